// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LIA, OLIA and BALIA for the subflows of Linux's own Multipath TCP, 6.1 and later.
//
// Each controller sees one subflow's acknowledgements and losses and reads the windows and round-trip times of its siblings. README.md has
// the equations, their sources and what is decided where those are silent.

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;

// Of the kernel's structures what is read or written here; CO-RE finds the places on the kernel that loads this.
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct list_head {
    struct list_head *next;
};
struct sock_common {
    volatile unsigned char skc_state;
};
struct sock {
    struct sock_common __sk_common;
};
struct inet_sock {
    struct sock sk;
};
struct inet_connection_sock {
    struct inet_sock icsk_inet;
    const void *icsk_ca_ops;
    void *icsk_ulp_data;
    u64 icsk_ca_priv[13];
};
struct tcp_sock {
    struct inet_connection_sock inet_conn;
    u64 bytes_acked;
    u32 srtt_us;  // eight times the smoothed round-trip time
    u32 snd_cwnd;
    u32 snd_cwnd_clamp;
    u32 snd_ssthresh;
    u32 prior_cwnd;
    u32 max_packets_out;
    u8 is_cwnd_limited : 1;
    u8 is_mptcp;
};
struct mptcp_sock {
    struct list_head conn_list;
};
struct mptcp_subflow_context {
    struct list_head node;
    u8 backup : 1;
    struct sock *tcp_sock;
    struct sock *conn;
};
struct tcp_congestion_ops {
    void (*init)(struct sock *sk);
    u32 (*ssthresh)(struct sock *sk);
    void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
    u32 (*undo_cwnd)(struct sock *sk);
    u32 flags;
    char name[16];
};
#pragma clang attribute pop

#define PATHS 8            // the kernel's own limit of subflows that join
#define ONE (1ULL << 40)   // one packet, in the fraction of a packet that a window has to its credit
#define RTT_MAX (1U << 26) // us, 67 s
#define LEAST 2            // packets, Reno's; OLIA's draft has 1, see README.md
#define ESTABLISHED 1
#define CLOSE_WAIT 8       // the peer has sent its last byte; this end may still send
#define SENDING (1U << ESTABLISHED | 1U << CLOSE_WAIT)
#define ANYBODY 1          // TCP_CONG_NON_RESTRICTED: chosen without CAP_NET_ADMIN

enum algorithm { LIA, OLIA, BALIA };
enum event { ACK, LOSS };

// In icsk_ca_priv.
struct control {
    s64 credit;     // of ONE: what of the window's change has not come to a whole packet
    u64 lost_at;    // bytes_acked at the last loss
    u64 between;    // bytes acknowledged between the last two losses
};

struct path {
    u32 cwnd;       // packets; 0: no path here
    u32 rtt_us;
    u64 unlost;     // bytes: the greater of what was acknowledged between the last two losses and since the last
};

// One acknowledgement or loss: what it was computed from and what came of it.
struct step {
    u64 subflow; // which one: the place of its context in the kernel
    s64 credit, credit_after;
    u32 algorithm, event, cwnd, ssthresh, acked, result, self, count;
    struct path paths[PATHS];
};

// Steps are kept while switch 0 is not 0, for tests: `bpftool map update`, `bpftool -j map dump`. Memory is taken only then.
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 2);
    __type(key, u32);
    __type(value, u32);
} tandem_switch SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 32768);
    __type(key, u32);
    __type(value, struct step);
} tandem_steps SEC(".maps");

static __always_inline void trace(struct step *s)
{
    u32 on_key = 0, next_key = 1, number;
    u32 *on = bpf_map_lookup_elem(&tandem_switch, &on_key), *next;

    if (!on || !*on)
        return;
    next = bpf_map_lookup_elem(&tandem_switch, &next_key);
    if (!next)
        return;
    number = __sync_fetch_and_add(next, 1);
    bpf_map_update_elem(&tandem_steps, &number, s, BPF_NOEXIST); // full: the first ones are kept
}

// Packets in us * 2^-32, at most 2^32. The round-trip time counts as at least a microsecond a packet (12 Gbit/s), so that no product below
// leaves 64 bits: at most 8 paths, 2^35 together, times 2^26 us.
static __always_inline u64 span(const struct path *p)
{
    u64 rtt = p->rtt_us > p->cwnd ? p->rtt_us : p->cwnd;

    return rtt < RTT_MAX ? rtt : RTT_MAX;
}

static __always_inline u64 rate(const struct path *p)
{
    return ((u64)p->cwnd << 32) / span(p);
}

// (x / sum) / (sum * rtt) of ONE: what all three have as x/rtt over the square of the sum of rates.
static __always_inline u64 linked(u64 x, u64 sum, u64 rtt)
{
    return (((x << 30) / sum) << 26) / ((sum * rtt) >> 16);
}

// The functions that are not static are verified each by itself, which keeps the paths of the verifier few.

// RFC 6356, 3: min(alpha / cwnd_total, 1 / cwnd_i), with alpha put in.
__noinline u64 gain_lia(struct step *s)
{
    u64 sum = 0, best = 0, best_x = 0, best_rtt = 1, gain, reno;

    if (!s)
        return 0;
    for (int i = 0; i < PATHS; i++) {
        const struct path *p = &s->paths[i];
        u64 x, z;

        if (!p->cwnd)
            continue;
        x = rate(p);
        z = (x << 28) / span(p);
        sum += x;
        if (z >= best) {
            best = z;
            best_x = x;
            best_rtt = span(p);
        }
    }
    gain = linked(best_x, sum, best_rtt);
    reno = ONE / s->cwnd;
    return gain < reno ? gain : reno;
}

// unlost / rtt^2, for comparison: TCP's throughput over that path, squared.
static __always_inline u64 quality(const struct path *p)
{
    u64 unlost = p->unlost < 1ULL << 32 ? p->unlost : (1ULL << 32) - 1; // beyond 4 GB without a loss none is better
    u64 q = (unlost << 28) / span(p);

    return q < 1ULL << 40 ? (q << 20) / span(p) : (q / span(p)) << 20;
}

// Khalili et al.: (w/rtt^2) / (sum of w/rtt)^2 + alpha/w. May be negative.
__noinline s64 gain_olia(struct step *s)
{
    u64 sum = 0, best = 0;
    u32 widest = 0, at_widest = 0, collected = 0, i;
    struct path *self;

    if (!s)
        return 0;
    for (i = 0; i < PATHS; i++) {
        const struct path *p = &s->paths[i];

        if (!p->cwnd)
            continue;
        sum += rate(p);
        if (quality(p) > best)
            best = quality(p);
        if (p->cwnd > widest)
            widest = p->cwnd;
    }
    for (i = 0; i < PATHS; i++) {
        const struct path *p = &s->paths[i];

        if (!p->cwnd)
            continue;
        if (p->cwnd == widest)
            at_widest++;
        else if (quality(p) == best)
            collected++;
    }
    self = &s->paths[s->self & (PATHS - 1)];
    s64 gain = linked(rate(self), sum, span(self));
    if (!collected)
        return gain;
    if (self->cwnd == widest)
        return gain - (s64)(ONE / ((u64)s->count * at_widest) / self->cwnd);
    if (quality(self) == best)
        return gain + (s64)(ONE / ((u64)s->count * collected) / self->cwnd);
    return gain;
}

// Peng et al.: alpha, the greatest rate over this path's own; of 2^10, from 1 to 1024.
__noinline u64 alpha_balia(struct step *s)
{
    u64 most = 0, own, alpha;

    if (!s)
        return 1 << 10;
    for (int i = 0; i < PATHS; i++) {
        u64 x = s->paths[i].cwnd ? rate(&s->paths[i]) : 0;

        if (x > most)
            most = x;
    }
    own = rate(&s->paths[s->self & (PATHS - 1)]);
    alpha = own ? (most << 10) / own : 1 << 10;
    return alpha < 1 << 20 ? alpha : 1 << 20;
}

// Peng et al.: x/rtt over the square of the sum of rates, times (1 + alpha)/2, times (4 + alpha)/5. linked() is at most ONE / alpha^2, so
// that the product stays below 2^60.
__noinline u64 gain_balia(struct step *s)
{
    u64 sum = 0, alpha;
    struct path *self;

    if (!s)
        return 0;
    for (int i = 0; i < PATHS; i++)
        if (s->paths[i].cwnd)
            sum += rate(&s->paths[i]);
    self = &s->paths[s->self & (PATHS - 1)];
    alpha = alpha_balia(s);
    return linked(rate(self), sum, span(self)) * ((((1 << 10) + alpha) * ((4 << 10) + alpha)) / 10) >> 20;
}

// Fill in the paths that this one is coupled with, itself among them. Siblings change while they are read: any may end, so each is read by
// probe_read, which a freed one cannot hurt, and the walk has a limit. Left out: subflows that do not send (their state), that have no
// round-trip time yet, that have another controller, and backup ones, which carry nothing while others can.
__noinline int gather(struct step *s)
{
    struct mptcp_subflow_context *own, *p;
    struct list_head *head, *node;
    struct tcp_sock *tp;
    const void *ops;

    if (!s)
        return 0;
    own = (void *)s->subflow;
    tp = (void *)BPF_CORE_READ(own, tcp_sock);
    ops = BPF_CORE_READ(tp, inet_conn.icsk_ca_ops);
    head = (void *)BPF_CORE_READ(own, conn) + bpf_core_field_offset(struct mptcp_sock, conn_list);
    node = BPF_CORE_READ(head, next);
    for (int i = 0; i < PATHS && node && node != head; i++) {
        struct control c = {};
        u64 since;

        p = (void *)node - bpf_core_field_offset(struct mptcp_subflow_context, node);
        node = BPF_CORE_READ(node, next);
        tp = (void *)BPF_CORE_READ(p, tcp_sock);
        if (p == own)
            s->self = i;
        else if (!(SENDING >> (BPF_CORE_READ(tp, inet_conn.icsk_inet.sk.__sk_common.skc_state) & 31) & 1) ||
                 BPF_CORE_READ(tp, inet_conn.icsk_ca_ops) != ops || BPF_CORE_READ_BITFIELD_PROBED(p, backup))
            continue;
        s->paths[i].rtt_us = BPF_CORE_READ(tp, srtt_us) >> 3;
        if (!s->paths[i].rtt_us && p != own)
            continue;
        s->paths[i].cwnd = BPF_CORE_READ(tp, snd_cwnd);
        bpf_probe_read_kernel(&c, sizeof c, (void *)tp + bpf_core_field_offset(struct inet_connection_sock, icsk_ca_priv));
        since = BPF_CORE_READ(tp, bytes_acked) - c.lost_at;
        s->paths[i].unlost = since > c.between ? since : c.between;
        s->count++;
    }
    return 0;
}

static __always_inline struct control *control(struct tcp_sock *tp)
{
    return (struct control *)tp->inet_conn.icsk_ca_priv;
}

static __always_inline void look(struct tcp_sock *tp, struct step *s)
{
    if (tp->is_mptcp) {
        s->subflow = (u64)BPF_CORE_READ(tp, inet_conn.icsk_ulp_data); // a number, whatever the kernel's verifier makes of void *
        gather(s);
    }
    if (s->count < 2) // alone, or not found in the first eight: as Reno
        s->count = 1;
}

// After tcp_is_cwnd_limited of the kernel: a window that is not used does not grow.
static __always_inline bool limited(struct tcp_sock *tp)
{
    if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
        return true;
    return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

static __always_inline void acknowledged(struct sock *sk, enum algorithm algorithm, u32 acked)
{
    struct tcp_sock *tp = (void *)sk;
    struct control *c = control(tp);
    struct step s = {.algorithm = algorithm, .event = ACK, .acked = acked, .credit = c->credit};
    u32 cwnd = tp->snd_cwnd, grown;
    s64 credit = c->credit, gain, whole;

    if (!limited(tp))
        return;
    s.cwnd = cwnd;
    s.ssthresh = tp->snd_ssthresh;
    if (cwnd < s.ssthresh) { // slow start, as RFC 5681 has it: none of the three changes it
        grown = acked < s.ssthresh - cwnd ? acked : s.ssthresh - cwnd;
        cwnd += grown;
        acked -= grown;
    }
    if (acked) {
        look(tp, &s);
        gain = ONE / (cwnd ? cwnd : 1);
        if (s.count > 1)
            gain = algorithm == LIA ? gain_lia(&s) : algorithm == OLIA ? gain_olia(&s) : gain_balia(&s);
        if (gain > (s64)ONE)
            gain = ONE;
        credit += gain * (acked < 1 << 16 ? acked : 1 << 16);
        if (credit >= (s64)ONE) {
            whole = credit >> 40;
            cwnd += whole;
            credit -= whole << 40;
        } else if (credit <= -(s64)ONE) {
            whole = -credit >> 40;
            cwnd = cwnd > whole + LEAST ? cwnd - whole : LEAST;
            credit += whole << 40;
        }
        c->credit = credit;
    }
    if (cwnd > tp->snd_cwnd_clamp)
        cwnd = tp->snd_cwnd_clamp;
    tp->snd_cwnd = cwnd;
    s.credit_after = credit;
    s.result = cwnd;
    trace(&s);
}

// The new threshold. The kernel brings the window down to it.
static __always_inline u32 lost(struct sock *sk, enum algorithm algorithm)
{
    struct tcp_sock *tp = (void *)sk;
    struct control *c = control(tp);
    struct step s = {.algorithm = algorithm, .event = LOSS, .credit = c->credit};
    u64 less, alpha;

    s.cwnd = tp->snd_cwnd;
    s.ssthresh = tp->snd_ssthresh;
    look(tp, &s);
    less = s.cwnd / 2;
    if (algorithm == BALIA && s.count > 1) { // w/2 * min(alpha, 1.5)
        alpha = alpha_balia(&s);
        less = (s.cwnd * (alpha < 1536 ? alpha : 1536)) >> 11;
    }
    s.result = s.cwnd - less > LEAST ? s.cwnd - less : LEAST;
    c->credit = 0;
    c->between = tp->bytes_acked - c->lost_at;
    c->lost_at = tp->bytes_acked;
    trace(&s);
    return s.result;
}

SEC("struct_ops/begin")
void BPF_PROG(begin, struct sock *sk)
{
    struct tcp_sock *tp = (void *)sk;
    struct control *c = control(tp);

    c->credit = 0;
    c->between = 0;
    c->lost_at = tp->bytes_acked;
}

// A loss that was none: the window of before.
SEC("struct_ops/undo")
u32 BPF_PROG(undo, struct sock *sk)
{
    struct tcp_sock *tp = (void *)sk;

    return tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd;
}

// Variables' names are the maps' names, by which `tandem-server congestion` knows its own.
#define CONTROLLER(word, algorithm)                                                              \
    SEC("struct_ops/" #word "_ack")                                                              \
    void BPF_PROG(word##_ack, struct sock *sk, u32 ack, u32 acked)                               \
    {                                                                                            \
        acknowledged(sk, algorithm, acked);                                                      \
    }                                                                                            \
    SEC("struct_ops/" #word "_loss")                                                             \
    u32 BPF_PROG(word##_loss, struct sock *sk)                                                   \
    {                                                                                            \
        return lost(sk, algorithm);                                                              \
    }                                                                                            \
    SEC(".struct_ops")                                                                           \
    struct tcp_congestion_ops tandem_##word = {.init = (void *)begin, .ssthresh = (void *)word##_loss, \
        .cong_avoid = (void *)word##_ack, .undo_cwnd = (void *)undo, .flags = ANYBODY, .name = #word}

CONTROLLER(lia, LIA);
CONTROLLER(olia, OLIA);
CONTROLLER(balia, BALIA);

char _license[] SEC("license") = "GPL"; // the kernel's word for the second of the two above; probe_read requires it
