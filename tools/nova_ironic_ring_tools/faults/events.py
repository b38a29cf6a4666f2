# SPDX-License-Identifier: Apache-2.0

"""The events that happen to the lab, one after the other.

Each event leaves the lab in a state that the next one can begin with.
"""

from collections.abc import Callable
import dataclasses
import time

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import view
from nova_ironic_ring_tools.faults import operators

# Seconds: three times the service_down_time of the lab.
_FREEZE = 25
# Longer, because a service is started meanwhile.
_OUTAGE = 30
_MINUTE = 60


@dataclasses.dataclass(frozen=True)
class Event:
    """An event.

    :ivar name: its name in the table
    :ivar happen: makes it happen, and returns when it is over
    :ivar allowance: how often each node may change hands; 0 if nodes may
        change hands only as often as needed
    :ivar error: a text that one line at ERROR in the log of a service must
        contain; empty if there need be no such line
    :ivar settles: whether each free node must be with its desired owner
        afterwards
    """

    name: str
    happen: Callable[[cloud.Lab], None]
    allowance: int = 0
    error: str = ''
    settles: bool = True


def _kill(lab: cloud.Lab) -> None:
    lab.compute('compute-2').kill()


def _return(lab: cloud.Lab) -> None:
    lab.start_compute('compute-2')


def _stop(lab: cloud.Lab) -> None:
    lab.compute('compute-3').stop()


def _start(lab: cloud.Lab) -> None:
    lab.start_compute('compute-3')


def _disable(lab: cloud.Lab) -> None:
    operators.set_enabled(lab, 'compute-1', False)
    time.sleep(_MINUTE)


def _enable(lab: cloud.Lab) -> None:
    operators.set_enabled(lab, 'compute-1', True)


def _join(lab: cloud.Lab) -> None:
    lab.add_compute('compute-4')
    lab.wait_alive('compute-4')
    lab.discover_hosts()


def _leave(lab: cloud.Lab) -> None:
    lab.compute('compute-4').kill()


def _freeze(*names: str) -> Callable[[cloud.Lab], None]:
    def happen(lab: cloud.Lab) -> None:
        frozen = [lab.state.process(name) for name in names]
        for process in frozen:
            process.pause()
        time.sleep(_FREEZE)
        for process in frozen:
            process.resume()
    return happen


def _restart_in_outage(lab: cloud.Lab) -> None:
    conductor = lab.state.process('nova-conductor')
    compute = lab.compute('compute-2')
    conductor.pause()
    over = time.monotonic() + _OUTAGE
    compute.kill()
    compute.start()
    time.sleep(max(0.0, over - time.monotonic()))
    conductor.resume()
    lab.wait_alive('compute-2')


def _stop_ironic(lab: cloud.Lab) -> None:
    ironic = lab.state.process('ironic')
    ironic.stop()
    time.sleep(_MINUTE)
    ironic.start()
    services.Ironic(lab.context).wait()


def _hide(lab: cloud.Lab) -> None:
    with services.Ironic(lab.context).hidden(lab.owners()):
        time.sleep(_MINUTE)


def _hide_servers(lab: cloud.Lab) -> None:
    """Hide one node of each service, which has a server."""
    with lab.cell() as opened:
        rows = view.read(opened).rows
    hidden = {row.owner: row.node for row in rows if not row.free}
    with services.Ironic(lab.context).hidden(hidden.values()):
        time.sleep(_MINUTE)


def _set_peers(lab: cloud.Lab, **peers: str) -> None:
    """Set peer lists of services, in the default group; "" removes one."""
    for key, peer_list in peers.items():
        name = key.replace('_', '-')
        sections = {'ironic': {'conductor_group': '', 'peer_list': peer_list}
                    } if peer_list else {}
        if lab.state.driver == lab_state.RING_DRIVER:
            lab.reconfigure(name, sections)
            continue
        # With Nova's own driver SIGHUP ends nova-compute.
        lab.compute(name).stop()
        lab.configure_compute(name, sections)
        lab.start_compute(name)


def _differ_in_peers(lab: cloud.Lab) -> None:
    _set_peers(lab, compute_1='compute-1', compute_2='compute-1,compute-2')
    time.sleep(_MINUTE + _FREEZE)


def _agree_on_peers(lab: cloud.Lab) -> None:
    _set_peers(lab, compute_1='', compute_2='')
    lab.start_compute('compute-3')


EVENTS = [
    Event('kill -9', _kill),
    Event('return', _return),
    Event('SIGTERM', _stop),
    Event('start again', _start),
    Event('disabled for a minute', _disable),
    Event('enabled', _enable),
    Event('join', _join),
    Event('kill -9 the fourth', _leave),
    # The nodes go to the one that is left, and come back.
    Event('two frozen', _freeze('compute-2', 'compute-3'), allowance=2),
    Event('conductor frozen', _freeze('nova-conductor')),
    Event('one restarted while conductor is frozen', _restart_in_outage),
    Event('RabbitMQ frozen', _freeze('rabbitmq')),
    Event('MariaDB frozen', _freeze('mariadb')),
    Event('Ironic API down for a minute', _stop_ironic),
    Event('all nodes hidden for a minute', _hide,
          error='Ironic does not show'),
    Event('three nodes with servers hidden for a minute', _hide_servers,
          error='its record is kept'),
    Event('SIGTERM', _stop),
    Event('peer lists that differ', _differ_in_peers, settles=False,
          error='gone by another ring than'),
    Event('peer lists mended', _agree_on_peers),
]
