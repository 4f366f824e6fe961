/* Names: the texts of numbers are those of the machine's libibverbs; a device that the program describes
 * itself has the name it says; a device has one GUID and one index, open or not; the interface of a GID is
 * one of the machine's; files of sysfs that there are not. What is closed has no descriptor any more. It opens the
 * machine's libibverbs, which a preloaded drop-in would replace.
 * verbsim exec --no-preload */
#include <dlfcn.h>
#include <fcntl.h>
#include <net/if.h>

#include "bench.h"

#ifdef __aarch64__
#define MACHINES "/usr/lib/aarch64-linux-gnu/libibverbs.so.1"
#else
#define MACHINES "/usr/lib/x86_64-linux-gnu/libibverbs.so.1"
#endif

/* For providers, in infiniband/driver.h. */
int ibv_read_sysfs_file(const char *folder, const char *file, char *buffer, size_t size);

typedef const char *text(int number);
typedef int number(int number);

static void *machines(const char *name)
{
    static void *library;
    if (!library)
        library = dlopen(MACHINES, RTLD_NOW | RTLD_LOCAL);
    CHECK(library);
    void *found = dlsym(library, name);
    CHECK(found);
    return found;
}

/* What a newer release has named is unknown to the machine's. */
static void compare_texts(const char *name, void *own)
{
    text *ours = own, *theirs = machines(name);
    CHECK(ours != theirs);
    for (int i = -300; i < 300; ++i) {
        const char *our_text = ours(i), *their_text = theirs(i);
        if (strcmp(our_text, their_text) && strcmp(their_text, "unknown")) {
            fprintf(stderr, "%s(%d): %s, and not %s\n", name, i, our_text, their_text);
            exit(1);
        }
    }
    CHECK(!strcmp(ours(1 << 30), "unknown"));
}

static void compare_numbers(const char *name, void *own, int limit)
{
    number *ours = own, *theirs = machines(name);
    for (int i = -1; i < limit; ++i)
        CHECK(ours(i) == theirs(i) || theirs(i) <= 0);
}

int main(void)
{
    compare_texts("ibv_wc_status_str", ibv_wc_status_str);
    compare_texts("ibv_event_type_str", ibv_event_type_str);
    compare_texts("ibv_port_state_str", ibv_port_state_str);
    compare_texts("ibv_node_type_str", ibv_node_type_str);
    CHECK(!strcmp(ibv_wc_status_str(IBV_WC_WR_FLUSH_ERR), "Work Request Flushed Error"));
    CHECK(!strcmp(ibv_event_type_str(20), "Device link speed change"));
    compare_numbers("ibv_rate_to_mult", ibv_rate_to_mult, 64);
    compare_numbers("mult_to_ibv_rate", mult_to_ibv_rate, 1000);
    compare_numbers("ibv_rate_to_mbps", ibv_rate_to_mbps, 64);
    compare_numbers("mbps_to_ibv_rate", mbps_to_ibv_rate, 2000000);

    struct ibv_device *own = calloc(1, sizeof *own);
    CHECK(own);
    strcpy(own->name, "mine");
    CHECK(ibv_get_device_name(own) == own->name);
    free(own);

    struct end end;
    open_end(&end, 0, 0);
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    CHECK(!ibv_query_device(end.context, &attr) && !ibv_query_port(end.context, 1, &port));
    CHECK(port.active_width == 2 && port.active_speed == 32 && port.phys_state == 5);
    const char *folder = end.context->device->ibdev_path;
    char line[64] = {0};
    CHECK(ibv_read_sysfs_file(folder, "node_type", line, sizeof line) == 5);
    CHECK(!strcmp(line, "1: CA") && ibv_read_sysfs_file(folder, "none", line, sizeof line) == -1);
    CHECK(ibv_read_sysfs_file("/proc/self", "comm", line, sizeof line) > 0 && line[0] != '1');
    CHECK(ibv_read_sysfs_file(folder, "node_type", line, 0) == -1);
    CHECK(ibv_read_sysfs_file(folder, "node_type", line, 1) == 0 && !line[0]);
    CHECK(ibv_read_sysfs_file(folder, "node_type", line, 3) == 2 && !strncmp(line, "1:", 2));
    CHECK(ibv_read_sysfs_file(NULL, "comm", line, sizeof line) == -1);
    CHECK(ibv_read_sysfs_file("/proc/self", NULL, line, sizeof line) == -1);
    CHECK(attr.node_guid && ibv_get_device_guid(end.context->device) == attr.node_guid);
    struct ibv_gid_entry entry;
    CHECK(!ibv_query_gid_ex(end.context, 1, 0, &entry, 0));
    struct if_nameindex *interfaces = if_nameindex();
    CHECK(interfaces);
    char name[IF_NAMESIZE];
    if (interfaces->if_index)
        CHECK(if_indextoname(entry.ndev_ifindex, name));
    else
        CHECK(!entry.ndev_ifindex);
    if_freenameindex(interfaces);
    const int descriptors[] = {end.context->async_fd, end.context->cmd_fd, end.channel->fd};
    close_end(&end);
    for (int i = 0; i < 3; ++i)
        CHECK(fcntl(descriptors[i], F_GETFD) == -1 && errno == EBADF);

    struct ibv_device **list = ibv_get_device_list(NULL);
    CHECK(list && list[0] && list[1]);
    CHECK(ibv_get_device_index(list[0]) != ibv_get_device_index(list[1]));
    ibv_free_device_list(list);
    return 0;
}
