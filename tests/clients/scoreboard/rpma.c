/* A server and a client of librpma: writes, flushes, reads, atomic writes and a message, with each byte compared.
 *
 *   rpma ADDRESS PORT server
 *   rpma ADDRESS PORT client
 */
#include <librpma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        int status = (call);                                                                       \
        if (status) {                                                                              \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, rpma_err_2str(status));  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define EXPECT(of) CHECK((of) ? 0 : RPMA_E_UNKNOWN)

enum { SIZE = 1 << 20, MESSAGE = 64 };
#define VISIBLE RPMA_FLUSH_TYPE_VISIBILITY
#define ALWAYS RPMA_F_COMPLETION_ALWAYS

static struct rpma_peer *peer;

static void *memory(size_t size)
{
    void *at = aligned_alloc(4096, size);
    EXPECT(at);
    return memset(at, 0, size);
}

static struct rpma_mr_local *registered(void *at, size_t size, int usage)
{
    struct rpma_mr_local *mr;
    CHECK(rpma_mr_reg(peer, at, size, usage, &mr));
    return mr;
}

static void completes(struct rpma_conn *conn, enum ibv_wc_opcode opcode)
{
    struct rpma_cq *cq;
    struct ibv_wc wc;
    CHECK(rpma_conn_get_cq(conn, &cq));
    CHECK(rpma_cq_wait(cq));
    CHECK(rpma_cq_get_wc(cq, 1, &wc, NULL));
    EXPECT(wc.status == IBV_WC_SUCCESS && wc.opcode == opcode);
}

static void happens(struct rpma_conn *conn, enum rpma_conn_event expected)
{
    enum rpma_conn_event event;
    CHECK(rpma_conn_next_event(conn, &event));
    EXPECT(event == expected);
}

static void fill(uint8_t *at, int round)
{
    for (size_t i = 0; i < SIZE; ++i)
        at[i] = round * 31 + i + (i >> 8);
}

static void serve(const char *address, const char *port)
{
    struct rpma_ep *ep;
    struct rpma_conn_req *request;
    struct rpma_conn *conn;
    uint8_t *target = memory(SIZE), *message = memory(MESSAGE), *expected = memory(SIZE), descriptor[256];
    int usage = RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
    struct rpma_mr_local *mr = registered(target, SIZE, usage);
    struct rpma_mr_local *inbox = registered(message, MESSAGE, RPMA_MR_USAGE_RECV);
    size_t size;
    CHECK(rpma_mr_get_descriptor_size(mr, &size));
    EXPECT(size <= sizeof descriptor);
    CHECK(rpma_mr_get_descriptor(mr, descriptor));
    CHECK(rpma_ep_listen(peer, address, port, &ep));
    CHECK(rpma_ep_next_conn_req(ep, NULL, &request));
    CHECK(rpma_conn_req_recv(request, inbox, 0, MESSAGE, NULL));
    struct rpma_conn_private_data data = {descriptor, size};
    CHECK(rpma_conn_req_connect(&request, &data, &conn));
    happens(conn, RPMA_CONN_ESTABLISHED);
    completes(conn, IBV_WC_RECV);
    EXPECT(!strcmp((char *)message, "written"));
    fill(expected, 2);
    memcpy(expected + 8, "atomic!!", 8);
    EXPECT(!memcmp(target, expected, SIZE));
    happens(conn, RPMA_CONN_CLOSED);
    CHECK(rpma_conn_disconnect(conn));
    CHECK(rpma_conn_delete(&conn));
    CHECK(rpma_mr_dereg(&inbox));
    CHECK(rpma_mr_dereg(&mr));
    CHECK(rpma_ep_shutdown(&ep));
    free(target);
    free(message);
    free(expected);
}

static void ask(const char *address, const char *port)
{
    struct rpma_conn_req *request;
    struct rpma_conn *conn;
    struct rpma_conn_private_data data;
    struct rpma_mr_remote *remote;
    uint8_t *out = memory(SIZE), *in = memory(SIZE);
    struct rpma_mr_local *from = registered(out, SIZE, RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_SEND);
    /* A flush reads. */
    struct rpma_mr_local *to = registered(in, SIZE, RPMA_MR_USAGE_READ_DST);
    CHECK(rpma_conn_req_new(peer, address, port, NULL, &request));
    CHECK(rpma_conn_req_connect(&request, NULL, &conn));
    happens(conn, RPMA_CONN_ESTABLISHED);
    CHECK(rpma_conn_get_private_data(conn, &data));
    CHECK(rpma_mr_remote_from_descriptor(data.ptr, data.len, &remote));
    for (int round = 0; round < 3; ++round) {
        fill(out, round);
        for (size_t at = 0; at < SIZE; at += SIZE / 4)
            CHECK(rpma_write(conn, remote, at, from, at, SIZE / 4, RPMA_F_COMPLETION_ON_ERROR, NULL));
        CHECK(rpma_flush(conn, remote, 0, SIZE, VISIBLE, ALWAYS, NULL));
        completes(conn, IBV_WC_RDMA_READ);
        CHECK(rpma_read(conn, to, 0, remote, 0, SIZE, ALWAYS, NULL));
        completes(conn, IBV_WC_RDMA_READ);
        EXPECT(!memcmp(in, out, SIZE));
    }
    CHECK(rpma_atomic_write(conn, remote, 8, "atomic!!", ALWAYS, NULL));
    completes(conn, IBV_WC_RDMA_WRITE);
    memcpy(out, "written", 8);
    CHECK(rpma_send(conn, from, 0, MESSAGE, ALWAYS, NULL));
    completes(conn, IBV_WC_SEND);
    CHECK(rpma_conn_disconnect(conn));
    happens(conn, RPMA_CONN_CLOSED);
    CHECK(rpma_mr_remote_delete(&remote));
    CHECK(rpma_conn_delete(&conn));
    CHECK(rpma_mr_dereg(&from));
    CHECK(rpma_mr_dereg(&to));
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    struct ibv_context *context;
    EXPECT(argc == 4);
    int is_server = !strcmp(argv[3], "server");
    enum rpma_util_ibv_context_type type = is_server ? RPMA_UTIL_IBV_CONTEXT_LOCAL : RPMA_UTIL_IBV_CONTEXT_REMOTE;
    CHECK(rpma_utils_get_ibv_context(argv[1], type, &context));
    CHECK(rpma_peer_new(context, &peer));
    if (is_server)
        serve(argv[1], argv[2]);
    else
        ask(argv[1], argv[2]);
    CHECK(rpma_peer_delete(&peer));
    puts("every byte is right");
    return 0;
}
