/* Opens a library as Python does: how many devices it finds. With `deep` the library prefers the symbols of its own
 * dependencies, with `apart` it is in a namespace of its own. With `direct` it is libibverbs itself, and the program looks
 * its symbol up by the handle. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int arguments, char **argument)
{
    int flags = RTLD_NOW | RTLD_LOCAL, count = 0;
    if (arguments < 3)
        return 2;
    if (!strcmp(argument[2], "deep"))
        flags |= RTLD_DEEPBIND;
    int is_apart = !strcmp(argument[2], "apart");
    void *library = is_apart ? dlmopen(LM_ID_NEWLM, argument[1], RTLD_NOW) : dlopen(argument[1], flags);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    if (!strcmp(argument[2], "direct")) {
        void **(*list)(int *) = (void **(*)(int *))dlsym(library, "ibv_get_device_list");
        if (!list || !list(&count))
            return 1;
    } else {
        int (*count_devices)(void) = (int (*)(void))dlsym(library, "count_devices");
        if (!count_devices)
            return 1;
        count = count_devices();
    }
    printf("%d\n", count);
    return 0;
}
