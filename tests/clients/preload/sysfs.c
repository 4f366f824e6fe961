/* Each file of a device says what the verb says that gives the same fact, in the words of Linux: below
 * /sys/class/infiniband, and below the device's own path. Each function of C that takes a path finds them. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <endian.h>
#include <infiniband/verbs.h>

#define CHECK(fact)                                                                                                    \
    do {                                                                                                               \
        if (!(fact)) {                                                                                                 \
            fprintf(stderr, "%s:%d: %s: errno %d\n", __FILE__, __LINE__, #fact, errno);                                \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* The places in which a device has its files. */
static const char *places[2];

/* A text that lasts for the next seven. */
__attribute__((format(printf, 1, 2))) static char *text(const char *format, ...)
{
    static char texts[8][PATH_MAX];
    static int next;
    va_list arguments;
    va_start(arguments, format);
    next = (next + 1) % 8;
    vsnprintf(texts[next], PATH_MAX, format, arguments);
    va_end(arguments);
    return texts[next];
}

/* A file of the device has one line, which is this. */
__attribute__((format(printf, 2, 3))) static void expect(const char *file, const char *format, ...)
{
    char expected[256], line[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(expected, sizeof expected - 1, format, arguments);
    va_end(arguments);
    strcat(expected, "\n");
    for (int i = 0; i < 2; ++i) {
        const char *path = text("%s/%s", places[i], file);
        FILE *opened = fopen(path, "r");
        if (!opened || !fgets(line, sizeof line, opened) || strcmp(line, expected)) {
            fprintf(stderr, "%s: expected %s", path, expected);
            exit(1);
        }
        CHECK(fgetc(opened) == EOF);
        fclose(opened);
    }
}

static int has(const char *file)
{
    return access(text("%s/%s", places[0], file), F_OK) == 0;
}

static const char *guid(uint64_t guid)
{
    uint64_t value = be64toh(guid);
    return text("%04x:%04x:%04x:%04x", (unsigned)(value >> 48), (unsigned)(value >> 32 & 0xffff),
                (unsigned)(value >> 16 & 0xffff), (unsigned)(value & 0xffff));
}

static const char *gid_text(const union ibv_gid *gid)
{
    static char text[40];
    for (int i = 0; i < 8; ++i)
        sprintf(text + 5 * i, "%02x%02x%s", gid->raw[2 * i], gid->raw[2 * i + 1], i < 7 ? ":" : "");
    return text;
}

static void compare_port(struct ibv_context *context, int port)
{
    static const char *states[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE"};
    struct ibv_port_attr attr;
    CHECK(!ibv_query_port(context, port, &attr));
#define FILE_OF(...) text("ports/%d/%s", port, text(__VA_ARGS__))
    CHECK(attr.state == IBV_PORT_ACTIVE && attr.phys_state == 5);
    expect(FILE_OF("state"), "%d: %s", attr.state, states[attr.state]);
    expect(FILE_OF("phys_state"), "5: LinkUp");
    expect(FILE_OF("link_layer"), "%s", attr.link_layer == IBV_LINK_LAYER_INFINIBAND ? "InfiniBand" : "Ethernet");
    expect(FILE_OF("lid"), "0x%x", attr.lid);
    expect(FILE_OF("sm_lid"), "0x%x", attr.sm_lid);
    expect(FILE_OF("lid_mask_count"), "%d", attr.lmc);
    expect(FILE_OF("cap_mask"), "0x%08x", attr.port_cap_flags);
    // soft-RoCE and soft-iWARP say one lane of the slowest speed.
    int is_slow = attr.active_width == 1 && attr.active_speed == 1;
    CHECK(is_slow || (attr.active_width == 2 && attr.active_speed == 32));
    expect(FILE_OF("rate"), is_slow ? "2.5 Gb/sec (1X SDR)" : "100 Gb/sec (4X EDR)");
    for (int i = 0; i < attr.pkey_tbl_len; ++i) {
        uint16_t pkey;
        CHECK(!ibv_query_pkey(context, port, i, &pkey));
        expect(FILE_OF("pkeys/%d", i), "0x%04x", be16toh(pkey));
    }
    CHECK(!has(FILE_OF("pkeys/%d", attr.pkey_tbl_len)));
    for (int i = 0; i < attr.gid_tbl_len; ++i) {
        union ibv_gid gid;
        struct ibv_gid_entry entry;
        char name[IF_NAMESIZE];
        CHECK(!ibv_query_gid(context, port, i, &gid));
        expect(FILE_OF("gids/%d", i), "%s", gid_text(&gid));
        int is_filled = !ibv_query_gid_ex(context, port, i, &entry, 0);
        CHECK(has(FILE_OF("gid_attrs/types/%d", i)) == is_filled);
        if (!is_filled)
            continue;
        expect(FILE_OF("gid_attrs/types/%d", i), "%s",
               entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
        CHECK(has(FILE_OF("gid_attrs/ndevs/%d", i)) == (entry.ndev_ifindex != 0));
        if (entry.ndev_ifindex) {
            CHECK(if_indextoname(entry.ndev_ifindex, name));
            expect(FILE_OF("gid_attrs/ndevs/%d", i), "%s", name);
        }
    }
    CHECK(!has(FILE_OF("gids/%d", attr.gid_tbl_len)));
}

static void compare_device(struct ibv_context *context)
{
    struct ibv_device_attr attr;
    CHECK(!ibv_query_device(context, &attr));
    expect("node_type", "%s", context->device->node_type == IBV_NODE_RNIC ? "4: RNIC" : "1: CA");
    expect("node_guid", "%s", guid(attr.node_guid));
    expect("sys_image_guid", "%s", guid(attr.sys_image_guid));
    expect("fw_ver", "%s", attr.fw_ver);
    expect("hw_rev", "%x", attr.hw_ver);
    expect("device/vendor", "0x%04x", attr.vendor_id);
    expect("device/device", "0x%04x", attr.vendor_part_id);
    expect("device/numa_node", "0");
    for (int port = 1; port <= attr.phys_port_cnt; ++port)
        compare_port(context, port);
    CHECK(!has("ports/0"));
    CHECK(!has(text("ports/%d", attr.phys_port_cnt + 1)));
}

static int plain(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Each function finds the device. */
static void find(const char *name, int number)
{
    char link[PATH_MAX], real[PATH_MAX], line[64];
    char path[128];
    const char *file;
    snprintf(path, sizeof path, "/sys/class/infiniband/%s", name);
    struct stat found, again;
    struct statx more;
    CHECK(!stat(path, &found) && S_ISDIR(found.st_mode));
    CHECK(!lstat(path, &found) && S_ISLNK(found.st_mode));
    CHECK(!fstatat(AT_FDCWD, path, &found, AT_SYMLINK_NOFOLLOW) && S_ISLNK(found.st_mode));
    CHECK(!statx(AT_FDCWD, path, 0, STATX_TYPE, &more) && S_ISDIR(more.stx_mode));
    CHECK(!access(path, R_OK) && !faccessat(AT_FDCWD, path, R_OK, 0) && !euidaccess(path, R_OK));
    ssize_t length = readlink(path, link, sizeof link);
    CHECK(length > 0 && readlinkat(AT_FDCWD, path, link, sizeof link) == length);
    file = text("/infiniband/%s", name);
    CHECK(memmem(link, length, file, strlen(file)));
    /* As Mooncake asks for the PCI device. */
    file = text("%s/../..", path);
    CHECK(realpath(file, real));
    CHECK(!access(text("%s/numa_node", real), R_OK));
    char *allocated = canonicalize_file_name(path);
    CHECK(allocated && !stat(allocated, &again) && !stat(path, &found) && found.st_ino == again.st_ino);
    free(allocated);
    /* As a program that follows links by itself. */
    file = text("/sys/class/infiniband/%.*s/node_guid", (int)length, link);
    CHECK(!access(file, R_OK));
    file = text("/sys%.*s/node_guid", (int)length - 5, link + 5);
    CHECK(!access(file, R_OK));

    int folder = open(path, O_RDONLY | O_DIRECTORY);
    CHECK(folder >= 0 && !faccessat(folder, "ports/1/state", R_OK, 0) && !close(folder));
    file = text("%s/node_guid", path);
    int opened = openat(AT_FDCWD, file, O_RDONLY);
    char bytes[32];
    CHECK(opened >= 0 && read(opened, bytes, sizeof bytes) == 20 && !close(opened));

    int count = 0;
    DIR *all = opendir("/sys/class/infiniband");
    CHECK(all);
    for (struct dirent *entry; (entry = readdir(all));)
        count += !strcmp(entry->d_name, name);
    closedir(all);
    struct dirent **names;
    int scanned = scandir("/sys/class/infiniband", &names, plain, alphasort);
    CHECK(count == 1 && scanned > number);
    while (scanned--)
        free(names[scanned]);
    free(names);

    file = text("/dev/infiniband/uverbs%d", number);
    CHECK(!stat(file, &found) && S_ISCHR(found.st_mode) && minor(found.st_rdev) == 192u + number);
    CHECK(!access(file, R_OK | W_OK) && (opened = open(file, O_RDWR)) >= 0 && !close(opened));
    file = text("/sys/class/infiniband_verbs/uverbs%d/ibdev", number);
    FILE *stream = fopen(file, "r");
    CHECK(stream && fgets(line, sizeof line, stream) && !fclose(stream));
    CHECK(!strncmp(line, name, strlen(name)) && line[strlen(name)] == '\n');

    CHECK(stat("/sys/class/infiniband/none", &found) && errno == ENOENT);
    CHECK(!fopen("/sys/class/infiniband/none", "r") && errno == ENOENT);
    /* Other paths are those of the machine. */
    CHECK(!stat("/sys/class/net", &found) && !stat("/dev/null", &found) && S_ISCHR(found.st_mode));
}

int main(void)
{
    int count;
    struct ibv_device **list = ibv_get_device_list(&count);
    CHECK(list && count > 0);
    for (int i = 0; i < count; ++i) {
        /* Before it is open, a device has all but its addresses. */
        const char *name = ibv_get_device_name(list[i]);
        find(name, i);
        char class[128];
        snprintf(class, sizeof class, "/sys/class/infiniband/%s", name);
        places[0] = class;
        places[1] = list[i]->ibdev_path;
        expect("node_guid", "%s", guid(ibv_get_device_guid(list[i])));
        CHECK(!access(list[i]->dev_path, F_OK));
        struct ibv_context *context = ibv_open_device(list[i]);
        CHECK(context);
        compare_device(context);
        CHECK(!ibv_close_device(context));
    }
    /* A child has addresses of its own, and files of its own below /sys. */
    pid_t child = fork();
    if (!child) {
        char class[128];
        snprintf(class, sizeof class, "/sys/class/infiniband/%s", ibv_get_device_name(list[0]));
        places[0] = places[1] = class;
        struct ibv_context *context = ibv_open_device(list[0]);
        CHECK(context);
        compare_device(context);
        exit(0);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && !status);
    CHECK(!access(list[0]->ibdev_path, F_OK));
    ibv_free_device_list(list);
    return 0;
}
