/* Contexts, protection domains and regions that a process has already, imported: they are the same for
 * the device, until the last of them is closed. */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

int main(int argc, char **argv)
{
    if (argc > 1)
        return ibv_import_device(atoi(argv[1])) || errno != EOPNOTSUPP;
    struct end a, b;
    open_end(&a, 0, 0);
    open_end(&b, 1, 0);

    /* Not what is no command descriptor, nor one that is not a duplicate. */
    int null = open("/dev/null", O_RDONLY);
    CHECK(!ibv_import_device(-1) && errno == EINVAL && !ibv_import_device(null) && errno == EINVAL);
    CHECK(!close(null) && !ibv_import_device(a.context->cmd_fd) && errno == EINVAL);

    int duplicate = dup(a.context->cmd_fd);
    struct ibv_context *context = ibv_import_device(duplicate);
    CHECK(context && context != a.context && context->device == a.context->device);
    CHECK(context->cmd_fd == duplicate && context->async_fd != a.context->async_fd);
    CHECK(!ibv_import_pd(context, 0x7fffffff) && errno == EINVAL);
    CHECK(!ibv_import_pd(context, b.pd->handle) && errno == EINVAL);
    struct ibv_pd *pd = ibv_import_pd(context, a.pd->handle);
    CHECK(pd && pd != a.pd && pd->context == context && pd->handle == a.pd->handle);
    CHECK(!ibv_import_mr(pd, b.mr->handle) && errno == EINVAL);
    CHECK(!ibv_import_mr(b.pd, a.mr->handle) && errno == EINVAL);
    struct ibv_mr *mr = ibv_import_mr(pd, a.mr->handle);
    CHECK(mr && mr->lkey == a.mr->lkey && mr->rkey == a.mr->rkey && mr->length == LENGTH);
    CHECK(!mr->addr && mr->pd == pd && mr->context == context && mr->handle == a.mr->handle);
    CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT);

    /* A queue pair of the imported domain, with a CQ of the first context. */
    struct ibv_qp *own = a.qp;
    struct ibv_qp_init_attr init = {
        .send_cq = a.cq, .recv_cq = a.cq, .qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 64}};
    CHECK((a.qp = ibv_create_qp(pd, &init)) && a.qp->context == context);
    connect_ends(&a, &b);
    post_recv(&b, 1, 16);
    strcpy(a.memory, "imported");
    post_send(&a, 2, 16, 0);
    CHECK(complete(&a).status == IBV_WC_SUCCESS && complete(&b).status == IBV_WC_SUCCESS);
    CHECK(!strcmp(b.memory, "imported"));
    post_recv(&b, 3, 16);
    post_send(&a, 4, 16, IBV_SEND_INLINE);
    CHECK(complete(&a).status == IBV_WC_SUCCESS && complete(&b).status == IBV_WC_SUCCESS);

    /* What is only given up stays for the others, and what was not imported is not given up. */
    ibv_unimport_mr(a.mr);
    ibv_unimport_mr(mr);
    CHECK(ibv_dereg_mr(mr) == EINVAL);
    ibv_unimport_pd(a.pd);
    ibv_unimport_pd(pd);
    CHECK(!ibv_create_qp(pd, &init) && errno == EINVAL);
    CHECK(!ibv_import_mr(pd, a.mr->handle) && errno == EINVAL);
    post_recv(&b, 5, 16);
    post_send(&a, 6, 16, 0);
    CHECK(complete(&a).status == IBV_WC_SUCCESS && complete(&b).status == IBV_WC_SUCCESS);
    CHECK(!ibv_destroy_qp(a.qp));
    a.qp = own;

    /* What is destroyed by one is gone for all. */
    CHECK((pd = ibv_import_pd(context, a.pd->handle)) && (mr = ibv_import_mr(pd, a.mr->handle)));
    struct ibv_parent_domain_init_attr attr = {.pd = a.pd};
    struct ibv_pd *parent = ibv_alloc_parent_domain(a.context, &attr);
    struct ibv_mr *through[2];
    for (int i = 0; i < 2; ++i)
        CHECK(parent && (through[i] = ibv_import_mr(parent, a.mr->handle)));
    CHECK(!ibv_dereg_mr(mr) && ibv_dereg_mr(a.mr) == EINVAL && ibv_dereg_mr(mr) == EINVAL);
    CHECK(ibv_dereg_mr(through[0]) == EINVAL);
    for (int i = 0; i < 2; ++i) {
        ibv_unimport_mr(through[i]);
        ibv_unimport_mr(through[i]);
    }
    CHECK(!ibv_import_mr(pd, a.mr->handle) && errno == EINVAL);
    CHECK(ibv_dealloc_pd(pd) == EBUSY && !ibv_destroy_qp(a.qp) && ibv_dealloc_pd(pd) == EBUSY);
    CHECK(!ibv_dealloc_pd(parent) && !ibv_dealloc_pd(pd));
    CHECK(ibv_dealloc_pd(a.pd) == EINVAL && !ibv_import_pd(context, a.pd->handle));
    CHECK(errno == EINVAL);

    /* The device is open until both are closed. */
    CHECK(!ibv_close_device(a.context) && ibv_close_device(a.context) == EINVAL);
    CHECK(!ibv_alloc_pd(a.context) && errno == EINVAL);
    CHECK((pd = ibv_alloc_pd(context)) && !ibv_dealloc_pd(pd));
    CHECK(!ibv_destroy_cq(a.cq) && !ibv_destroy_comp_channel(a.channel));
    CHECK(!ibv_close_device(context) && ibv_close_device(context) == EINVAL);
    CHECK(fcntl(duplicate, F_GETFD) < 0 && errno == EBADF);

    /* Another process, which gets the descriptor, has another engine. */
    char fd[16];
    snprintf(fd, sizeof fd, "%d", dup(b.context->cmd_fd));
    pid_t child = fork();
    if (!child) {
        execl(argv[0], argv[0], fd, NULL);
        _exit(1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);

    free(a.memory);
    close_end(&b);
    return 0;
}
