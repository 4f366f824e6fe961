/* An MPI program of any number of ranks: each byte of messages of many sizes between all pairs, sums, and exchanges of
 * all with all. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(of)                                                                                  \
    do {                                                                                           \
        if (!(of)) {                                                                               \
            fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, rank, #of);                \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                          \
        }                                                                                          \
    } while (0)

enum { MOST = 1 << 20, ROUNDS = 20 };

static uint8_t byte_of(int from, int to, int size, int at) { return from * 7 + to * 13 + size + at + (at >> 8); }

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    uint8_t *out = malloc(MOST), *in = malloc(MOST);
    CHECK(ranks > 1 && out && in);
    for (int size = 1; size <= MOST; size *= 4) {
        for (int shift = 1; shift < ranks; ++shift) {
            int to = (rank + shift) % ranks, from = (rank + ranks - shift) % ranks;
            for (int at = 0; at < size; ++at)
                out[at] = byte_of(rank, to, size, at);
            MPI_Sendrecv(out, size, MPI_BYTE, to, size, in, size, MPI_BYTE, from, size, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            for (int at = 0; at < size; ++at)
                CHECK(in[at] == byte_of(from, rank, size, at));
        }
    }
    for (int round = 0; round < ROUNDS; ++round) {
        long own = (rank + 1) * (round + 1), sum;
        MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum == (long)(round + 1) * ranks * (ranks + 1) / 2);
        int *mine = malloc(ranks * sizeof *mine), *theirs = malloc(ranks * sizeof *theirs);
        for (int to = 0; to < ranks; ++to)
            mine[to] = rank * 1000 + to + round;
        MPI_Alltoall(mine, 1, MPI_INT, theirs, 1, MPI_INT, MPI_COMM_WORLD);
        for (int from = 0; from < ranks; ++from)
            CHECK(theirs[from] == from * 1000 + rank + round);
        free(mine);
        free(theirs);
    }
    free(out);
    free(in);
    MPI_Finalize();
    if (!rank)
        printf("%d ranks: every byte is right\n", ranks);
    return 0;
}
