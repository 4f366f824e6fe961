"""Every function of the Python module: with pyverbs, without it, and where the devices are not simulated."""

import errno
import os
import sys
import threading

import verbsim


def raises(number, call):
    """Checks that a call raises OSError with this errno value."""
    try:
        call()
    except OSError as error:
        assert error.errno == number, error
    else:
        raise AssertionError("no error")


def check_not_simulated():
    assert not verbsim.is_simulated()
    assert verbsim.findings() == [] and verbsim.mark("here") == 0
    for call in (
        lambda: verbsim.inject('[[rule]]\nkind = "packet"\neffect = "drop"'),
        lambda: verbsim.drop_packets(),
        lambda: verbsim.delay_packets(0.001),
        lambda: verbsim.fail_calls("ibv_reg_mr", errno.ENOMEM),
        lambda: verbsim.fail_completions(10),
        lambda: verbsim.port_down("sim0"),
        lambda: verbsim.kill_device("sim0"),
    ):
        raises(errno.ENOTSUP, call)


def check_without_devices():
    """What needs no device."""
    assert verbsim.is_simulated() and verbsim.findings() == []
    first = verbsim.mark("first")
    assert first > 0 and verbsim.mark("grüße") == first + 1
    with verbsim.fail_calls("ibv_open_device", errno.EMFILE, device="sim1") as fault:
        assert fault.fired == 0 and fault.number > 0
    assert fault.fired == 0 and fault.remove() == 0
    rules = verbsim.inject('[[rule]]\nkind = "packet"\neffect = "delay"\nby = "1ms"\nper_million = 1000')
    assert rules.remove() == 0
    for call in (
        lambda: verbsim.inject("[[rule]]"),
        lambda: verbsim.drop_packets(-1),
        lambda: verbsim.drop_packets(qp=1 << 24),
        lambda: verbsim.drop_packets(qp=1 << 32),
        lambda: verbsim.delay_packets(0),
        lambda: verbsim.fail_calls("ibv_reg_mr", 0),
        lambda: verbsim.port_down("sim0", 2),
        lambda: verbsim.findings(since=1000),
    ):
        raises(errno.EINVAL, call)
    raises(errno.ENODEV, lambda: verbsim.kill_device("nowhere"))
    for call in (
        lambda: verbsim.mark("a\0b"),
        lambda: verbsim.mark("\udcff"),
        lambda: verbsim.delay_packets(float("nan")),
    ):
        raises(errno.EINVAL, call)
    for call in (
        lambda: verbsim.mark(5),
        lambda: verbsim.inject(b"[[rule]]"),
        lambda: verbsim.fail_calls(5, errno.EIO),
        lambda: verbsim.delay_packets("soon"),
        lambda: verbsim.drop_packets(1.5),
        lambda: verbsim.drop_packets(device=0),
        lambda: verbsim.drop_packets(qp="x"),
        lambda: verbsim.drop_packets(qp=True),
        lambda: verbsim.port_down(7),
    ):
        try:
            call()
        except TypeError:
            continue
        raise AssertionError("no error")
    try:
        with verbsim.drop_packets() as fault:
            # As if in a child after fork, which does not know it.
            fault.number += 1
            raise KeyError("of the block")
    except KeyError:
        fault.number -= 1
        fault.remove()


def check_with_pyverbs():
    import pyverbs.enums as e
    from pyverbs.addr import AHAttr, GlobalRoute
    from pyverbs.cq import CQ
    from pyverbs.device import Context
    from pyverbs.mr import MR
    from pyverbs.pd import PD
    from pyverbs.pyverbs_error import PyverbsError
    from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
    from pyverbs.wr import SGE, SendWR

    class End:
        def __init__(self, name):
            self.context = Context(name=name)
            self.pd = PD(self.context)
            self.cq = CQ(self.context, 16, None, None, 0)
            self.mr = MR(self.pd, 64, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE)
            self.qp = QP(self.pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=QPCap()))

        def connect(self, peer):
            route = GlobalRoute(dgid=peer.context.query_gid(1, 0), sgid_index=0)
            attr = QPAttr(port_num=1)
            attr.qp_access_flags = e.IBV_ACCESS_REMOTE_WRITE
            attr.dest_qp_num, attr.path_mtu = peer.qp.qp_num, e.IBV_MTU_1024
            attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
            attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
            attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.min_rnr_timer = 10, 7, 7, 12
            self.qp.to_rts(attr)

    a, b = End("sim0"), End("sim1")

    def reconnect():
        for end in (a, b):
            end.qp.modify(QPAttr(qp_state=e.IBV_QPS_RESET), e.IBV_QP_STATE)
        a.connect(b)
        b.connect(a)

    def write(rkey):
        wr = SendWR(num_sge=1, sg=[SGE(a.mr.buf, 64, a.mr.lkey)], opcode=e.IBV_WR_RDMA_WRITE,
                    send_flags=e.IBV_SEND_SIGNALED)
        wr.set_wr_rdma(rkey, b.mr.buf)
        a.qp.post_send(wr)
        while True:
            count, wcs = a.cq.poll()
            if count:
                return wcs[0].status

    a.connect(b)
    b.connect(a)
    with verbsim.drop_packets(2, device=a.context, qp=a.qp) as fault:
        assert write(b.mr.rkey) == e.IBV_WC_SUCCESS and fault.fired == 2
    with verbsim.drop_packets(0, device="sim0", qp=a.qp.qp_num + 1) as fault:
        assert write(b.mr.rkey) == e.IBV_WC_SUCCESS and fault.fired == 0
    with verbsim.delay_packets(0.001, qp=b.qp) as fault:
        assert write(b.mr.rkey) == e.IBV_WC_SUCCESS
    assert fault.fired == 1
    with verbsim.fail_calls("ibv_alloc_pd", errno.ENOMEM, device=b.context) as fault:
        PD(a.context).close()
        try:
            PD(b.context)
        except PyverbsError:
            pass
        assert fault.fired == 1
    assert verbsim.findings() == [] or all(found.level == "warning" for found in verbsim.findings())

    before = verbsim.mark("before the mistake")
    assert write(0x1234) == e.IBV_WC_REM_ACCESS_ERR
    reconnect()
    errors = [found for found in verbsim.findings(since=before) if found.level == "error"]
    assert [(found.cls, found.device, found.count) for found in errors] == [("VS-KEY-01", "sim0", 1)], errors
    assert "no region has the rkey 0x1234" in str(errors[0]) and errors[0].rule and errors[0].help
    after = verbsim.mark("after the mistake")
    assert verbsim.findings(since=after) == []

    with verbsim.fail_completions(e.IBV_WC_REM_OP_ERR, qp=a.qp) as fault:
        assert write(b.mr.rkey) == e.IBV_WC_REM_OP_ERR
    reconnect()
    with verbsim.port_down(a.context):
        assert a.context.query_port(1).state == e.IBV_PORT_DOWN
    assert a.context.query_port(1).state == e.IBV_PORT_ACTIVE

    threads = [threading.Thread(target=verbsim.findings) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    child = os.fork()
    if child == 0:
        os._exit(0 if verbsim.findings() == [] else 1)
    assert os.waitpid(child, 0)[1] == 0

    verbsim.kill_device(b.context)
    raises(errno.EIO, lambda: verbsim.kill_device("sim1"))
    try:
        PD(b.context)
    except PyverbsError:
        return
    raise AssertionError("the device is alive")


try:
    import pyverbs
except ImportError:
    pyverbs = None
if pyverbs:
    # It loads libibverbs, where nothing is preloaded.
    import pyverbs.device

if not verbsim.is_simulated():
    check_not_simulated()
    print("not simulated")
    sys.exit()
check_without_devices()
if pyverbs:
    check_with_pyverbs()
print("simulated, with pyverbs" if pyverbs else "simulated")
