/* A library that a wheel brings, linked with the wheel's own libibverbs. */
#include <infiniband/verbs.h>

int count_devices(void)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    if (list)
        ibv_free_device_list(list);
    return count;
}
