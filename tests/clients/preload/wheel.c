/* Linked with a copy of the machine's libibverbs under another name, as a wheel brings it: how many devices there are,
 * and whether one can be opened. */
#include <stdio.h>

#include <infiniband/verbs.h>

int main(void)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    for (int i = 0; i < count; ++i) {
        struct ibv_context *context = ibv_open_device(list[i]);
        if (!context || ibv_close_device(context))
            return 1;
        printf("%s\n", ibv_get_device_name(list[i]));
    }
    if (list)
        ibv_free_device_list(list);
    return 0;
}
