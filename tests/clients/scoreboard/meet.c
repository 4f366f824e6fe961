/* A server and a client of UCX that meet by an address, as programs do that know nothing but that:
 *
 *   meet PORT             takes one client, and sends back what it gets
 *   meet PORT ADDRESS     sends, and checks what comes back
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

#define CHECK(of)                                                                                  \
    do {                                                                                           \
        if (!(of)) {                                                                               \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #of);                               \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { ROUNDS = 20, MOST = 1 << 18, TAG = 7 };

static ucp_worker_h worker;

static void finish(void *request)
{
    if (!UCS_PTR_IS_PTR(request)) {
        CHECK(UCS_PTR_STATUS(request) == UCS_OK);
        return;
    }
    while (ucp_request_check_status(request) == UCS_INPROGRESS)
        ucp_worker_progress(worker);
    CHECK(ucp_request_check_status(request) == UCS_OK);
    ucp_request_free(request);
}

static void send_to(ucp_ep_h ep, const void *data, size_t size)
{
    ucp_request_param_t param = {0};
    finish(ucp_tag_send_nbx(ep, data, size, TAG, &param));
}

static void receive(void *data, size_t size)
{
    ucp_request_param_t param = {0};
    finish(ucp_tag_recv_nbx(worker, data, size, TAG, ~0ull, &param));
}

static void take(ucp_conn_request_h request, void *argument) { *(ucp_conn_request_h *)argument = request; }

static void failed(void *argument, ucp_ep_h ep, ucs_status_t status)
{
    (void)argument, (void)ep;
    fprintf(stderr, "the peer is gone: %s\n", ucs_status_string(status));
}

static ucp_ep_h meet(const char *port, const char *address)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    CHECK(inet_pton(AF_INET, address ? address : "0.0.0.0", &addr.sin_addr) == 1);
    ucs_sock_addr_t at = {(struct sockaddr *)&addr, sizeof addr};
    ucp_ep_params_t to = {.field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER,
                          .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                          .err_handler.cb = failed};
    ucp_conn_request_h request = NULL;
    ucp_listener_h listener = NULL;
    if (address) {
        to.field_mask |= UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
        to.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
        to.sockaddr = at;
    } else {
        ucp_listener_params_t listen = {
            .field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
            .sockaddr = at,
            .conn_handler = {take, &request}};
        CHECK(ucp_listener_create(worker, &listen, &listener) == UCS_OK);
        while (!request)
            ucp_worker_progress(worker);
        to.field_mask |= UCP_EP_PARAM_FIELD_CONN_REQUEST;
        to.conn_request = request;
    }
    ucp_ep_h ep;
    CHECK(ucp_ep_create(worker, &to, &ep) == UCS_OK);
    if (listener)
        ucp_listener_destroy(listener);
    return ep;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2 || argc == 3);
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
    ucp_worker_params_t worker_params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                         .thread_mode = UCS_THREAD_MODE_SINGLE};
    ucp_context_h context;
    CHECK(ucp_init(&params, NULL, &context) == UCS_OK);
    CHECK(ucp_worker_create(context, &worker_params, &worker) == UCS_OK);
    ucp_ep_h ep = meet(argv[1], argv[2]);
    uint8_t *out = malloc(MOST), *in = malloc(MOST);
    CHECK(out && in);
    for (int round = 0; round < ROUNDS; ++round) {
        size_t size = MOST >> (round % 18);
        if (argc == 2) {
            receive(in, size);
            send_to(ep, in, size);
            continue;
        }
        for (size_t at = 0; at < size; ++at)
            out[at] = round * 31 + at + (at >> 8);
        send_to(ep, out, size);
        receive(in, size);
        CHECK(!memcmp(in, out, size));
    }
    /* The last message has been compared. The peer may be gone before this side, which is not a failure. */
    ucp_request_param_t close = {0};
    void *closing = ucp_ep_close_nbx(ep, &close);
    while (UCS_PTR_IS_PTR(closing) && ucp_request_check_status(closing) == UCS_INPROGRESS)
        ucp_worker_progress(worker);
    if (UCS_PTR_IS_PTR(closing))
        ucp_request_free(closing);
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
    free(out);
    free(in);
    puts("every byte is right");
    return 0;
}
