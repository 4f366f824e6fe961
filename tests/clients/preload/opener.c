/* Opens a library as Python does, and with `deep` so that the library prefers the symbols of its own dependencies: how
 * many devices it finds. With `direct` the library is libibverbs itself, and its symbol is looked up by the handle. */
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
    void *library = dlopen(argument[1], flags);
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
