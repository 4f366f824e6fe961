/* Programs that were linked with an older or newer libibverbs find its symbols in their versions. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "bench.h"

int main(void)
{
    static const struct {
        const char *name, *version;
    } symbols[] = {
        {"ibv_create_comp_channel", "IBVERBS_1.0"},
        {"ibv_open_device", "IBVERBS_1.1"},
        {"ibv_get_pkey_index", "IBVERBS_1.5"},
        {"ibv_qp_to_qp_ex", "IBVERBS_1.6"},
        {"ibv_reg_mr_iova", "IBVERBS_1.7"},
        {"ibv_reg_mr_iova2", "IBVERBS_1.8"},
        {"ibv_get_device_index", "IBVERBS_1.9"},
        {"ibv_import_device", "IBVERBS_1.10"},
        {"_ibv_query_gid_table", "IBVERBS_1.11"},
        {"ibv_reg_dmabuf_mr", "IBVERBS_1.12"},
        {"ibv_is_fork_initialized", "IBVERBS_1.13"},
        {"ibv_query_qp_data_in_order", "IBVERBS_1.14"},
        {"ibv_reg_mr_ex", "IBVERBS_1.15"},
        {"ibv_dm_export_dmabuf_fd", "IBVERBS_1.16"},
        {"ibv_alloc_buf", "IBVERBS_1.17"},
        {"ibv_create_comp_cntr", "IBVERBS_1.18"},
        {"verbs_register_driver_34", "IBVERBS_PRIVATE_34"},
        {"verbs_register_driver_57", "IBVERBS_PRIVATE_57"},
        {"verbs_register_driver_59", "IBVERBS_PRIVATE_59"},
        {"verbs_register_driver_65", "IBVERBS_PRIVATE_65"},
    };
    void *library = dlopen("libibverbs.so.1", RTLD_NOW);
    CHECK(library);
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; ++i)
        if (!dlvsym(library, symbols[i].name, symbols[i].version)) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
    CHECK(!dlvsym(library, "ibv_open_device", "IBVERBS_1.18"));
    CHECK(!dlclose(library));
    return 0;
}
