# SPDX-License-Identifier: Apache-2.0

"""Finishes what dead services were doing with their instances."""

from collections.abc import Callable, Container, Iterable
import dataclasses
import threading
import time

from nova.compute import power_state
from nova.compute import task_states
from nova.compute import utils as compute_utils
from nova.compute import vm_states
import nova.conf
from nova import context as nova_context
from nova import exception
from nova import objects
from oslo_log import log as logging

from nova_ironic_ring.adapters.nova import marks
from nova_ironic_ring.adapters.nova import user_requests
from nova_ironic_ring.adapters.trail import actions
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute.instances import evacuations
from nova_ironic_ring.compute.recording import counters
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import states

LOG = logging.getLogger(__name__)
CONF = nova.conf.CONF

# Seconds that the resource tracker may take to record a node, and after which
# what Ironic is at work on is told. Ironic itself ends most that takes it too
# long, but holds a node until an operator ends that.
_PATIENCE = 1800
# Seconds between two looks in the first seconds after the takeover, the number
# of these, and seconds at most between two looks. The longer it takes, the
# less often is Ironic asked.
_POLL = 1.0
_SOON = 10
_LONGEST_WAIT = 60
# How often to try in a row, with as long at most between two tries: Nova's
# databases and queues may have died with the service, and be back in minutes.
_ATTEMPTS = 30
# How many at a time; not counting those, up to another number, that have been
# looked at for so many seconds, because a machine does not do what it is to.
_THREADS = 8
_HELD = 60
_MOST_HELD = 56

_NO_THREAD = ('The recovery of instances of dead services waits until this '
              'process can start a thread: %s')

_SHELVING = frozenset({
    task_states.SHELVING, task_states.SHELVING_OFFLOADING,
    # Never with Nova's ironic driver, which makes no image.
    task_states.SHELVING_IMAGE_PENDING_UPLOAD,
    task_states.SHELVING_IMAGE_UPLOADING})
# In these, something may be left to do although there is no task.
_UNFINISHED = frozenset({vm_states.BUILDING, vm_states.SHELVED_OFFLOADED})
#: By the task that Nova's API sets: the task by which Nova's recovery does
#: what the user has asked for.
_BEGUN = {task_states.REBOOTING: task_states.REBOOT_PENDING,
          task_states.REBOOTING_HARD: task_states.REBOOT_PENDING_HARD,
          task_states.RESTORING: task_states.POWERING_ON,
          # Of one that still has its machine.
          task_states.UNSHELVING: task_states.POWERING_ON}
# With these, the machine is switched on or off.
_SWITCHING = frozenset({
    *_BEGUN, *_BEGUN.values(),
    task_states.REBOOT_STARTED, task_states.REBOOT_STARTED_HARD,
    task_states.POWERING_OFF, task_states.SOFT_DELETING})


@dataclasses.dataclass
class _Job:
    """An instance to recover.

    :ivar taken: what was taken over
    :ivar since: when it was taken over, in seconds
    :ivar due: when to look at it, in seconds
    :ivar attempts: how often it has failed in a row
    :ivar begun: when the look at it has begun that is under way, in seconds
    :ivar is_told: whether the log has that Ironic takes long
    :ivar is_done: whether nothing is left to do
    """

    taken: model.Takeover
    since: float
    due: float = 0.0
    attempts: int = 0
    begun: float | None = None
    is_told: bool = False
    is_done: bool = False

    @property
    def waited(self) -> float:
        """How long ago it was taken over, in seconds."""
        return time.monotonic() - self.since


class Recovery:
    """Recovers instances that were taken over, as a restart would.

    It uses few threads, which do not wait: it looks again at what is not
    finished. Nova itself may wait for a machine for ever, and then others go
    on.
    """

    def __init__(self, source: upstream.NovaIronicDriver,
                 builds: Container[str],
                 track: Callable[[str], bool] = lambda _: False) -> None:
        """Begin with nothing to do.

        :param source: the driver that the manager has
        :param builds: UUIDs of the instances that this service is to build
        :param track: called with a node that the tracker does not track; makes
            the tracker track it, and returns whether it does
        """
        self._track = track
        self._source = source
        self._builds = builds
        self._lock = threading.Lock()
        self._jobs: list[_Job] = []
        #: Instances that Nova recovers at the moment, as a step of that.
        self._at_nova: set[str] = set()
        #: Whether a thread looks at them.
        self._is_busy = False

    @property
    def pending(self) -> int:
        """How many instances are not recovered yet."""
        with self._lock:
            return sum(not job.is_done for job in self._jobs)

    def start(self, taken: Iterable[model.Takeover]) -> None:
        """Begin to recover instances, and return at once.

        :param taken: what was taken over; with the consent of a live service,
            nothing was being done with it, and nothing is done here. Without
            any, those continue for which no thread could be started
        """
        now = time.monotonic()
        with self._lock:
            self._jobs += [_Job(each, now) for each in taken
                           if each.is_dead]
            if self._is_busy or not self._jobs:
                return
            self._is_busy = True
        try:
            threading.Thread(target=self._run, daemon=True).start()
        except RuntimeError as error:
            # It does not fail the pass, and the next one tries again.
            self._is_busy = False
            LOG.error(_NO_THREAD, error)

    def resume(self, context: nova_context.RequestContext,
               instance: objects.Instance) -> bool:
        """Continue with an instance after a restart of this service.

        Nova's own recovery of a start would end a build, leave other tasks as
        they are, and lose some deletes.

        :param context: with the rights of an administrator
        :param instance: an instance of this service
        :returns: whether it was taken over, and not recovered before this
            service was started: then Nova is to leave it alone
        """
        if instance.node is None or instance.task_state is None and (
                instance.vm_state not in _UNFINISHED):
            return False
        with self._lock:
            if instance.uuid in self._at_nova:
                return False
            if any(job.taken.instance == instance.uuid for job in self._jobs):
                # The first pass comes before Nova's own recovery.
                return True
        try:
            host = left_by(context, instance)
        except Exception as error:
            LOG.warning('Cannot find out whether instance %(instance)s was '
                        'taken over, and was not recovered before this '
                        'service was started: %(error)s', {
                            'instance': instance.uuid, 'error': error})
            return False
        if host is None:
            return False
        LOG.info('Instance %(instance)s was taken over from %(host)s, and not '
                 'recovered before this service was started: that goes on '
                 'now.', {'instance': instance.uuid, 'host': host})
        self.start([model.Takeover(
            instance.node, instance.uuid, host, instance.task_state, True)])
        return True

    def _run(self) -> None:
        """Look at all that is due, until nothing is left."""
        while True:
            try:
                while job := self._next():
                    self._begin(job)
            except RuntimeError as error:
                LOG.error(_NO_THREAD, error)
                time.sleep(_LONGEST_WAIT)
            time.sleep(_POLL)
            with self._lock:
                self._jobs = [job for job in self._jobs if not job.is_done]
                self._is_busy = bool(self._jobs)
                if not self._is_busy:
                    return

    def _next(self) -> _Job | None:
        """Choose an instance to look at now.

        :returns: None if none is due, or if so many are looked at that this
            one has to wait
        """
        now = time.monotonic()
        with self._lock:
            begun = [job.begun for job in self._jobs if job.begun is not None]
            held = sum(now - each >= _HELD for each in begun)
            if len(begun) - min(held, _MOST_HELD) >= _THREADS:
                return None
            job = min((job for job in self._jobs if job.begun is None
                       and job.due <= now and not job.is_done),
                      key=lambda job: job.due, default=None)
            if job is not None:
                job.begun = now
            return job

    def _begin(self, job: _Job) -> None:
        """Look at an instance, and then at others, in a thread of its own.

        :raises RuntimeError: if no thread could be started
        """
        try:
            threading.Thread(
                target=self._work, args=(job,), daemon=True).start()
        except RuntimeError:
            job.begun = None
            raise

    def _work(self, job: _Job | None) -> None:
        """Look at one instance after the other."""
        while job is not None:
            try:
                self._try(job)
            finally:
                job.begun = None
            job = self._next()

    def _try(self, job: _Job) -> None:
        """Look at an instance, and retry later if that fails."""
        try:
            job.is_done = self._look(job)
            job.attempts = 0
            job.due = time.monotonic() + min(
                _POLL * max(1, job.waited / _SOON), _LONGEST_WAIT)
        except exception.InstanceNotFound:
            job.is_done = True
        except Exception:
            job.attempts += 1
            job.due = time.monotonic() + min(
                2 ** job.attempts * _POLL, _LONGEST_WAIT)
            LOG.exception('Instance %(instance)s, which was taken over from '
                          '%(host)s, cannot be recovered (attempt '
                          '%(attempt)d of %(all)d).', {
                              'instance': job.taken.instance,
                              'host': job.taken.host,
                              'attempt': job.attempts, 'all': _ATTEMPTS})
            if job.attempts >= _ATTEMPTS:
                counters.COUNTERS.gave_up()
                job.is_done = True

    def _look(self, job: _Job) -> bool:
        """Continue with an instance.

        :returns: whether nothing is left to do
        """
        # A build of this service ends what it has begun.
        if job.taken.instance in self._builds:
            return False
        # A delete, for instance, reads the node's row. The tracker reaches the
        # node in the pass, unless the node needs no update, for instance
        # because Ironic no longer has the instance on it.
        node = job.taken.node
        if not upstream.tracks(self._source, node) and (
                not self._track(node) and job.waited < _PATIENCE):
            return False
        context = nova_context.get_admin_context()
        instance = objects.Instance.get_by_uuid(
            context, job.taken.instance,
            expected_attrs=list(upstream.RECOVERY_ATTRIBUTES))
        if model.canonical(instance.host or '') != model.canonical(CONF.host):
            return True
        if instance.vm_state == vm_states.BUILDING and (
                instance.task_state != task_states.DELETING):
            # A service that has not died after all goes from task to task
            # until it finds out that it has lost the build.
            return self._carry_on_build(context, instance, job)
        if evacuations.settle(self._source, context, instance):
            self._recover(context, instance)
            return True
        if instance.task_state != job.taken.task:
            LOG.info('Instance %(instance)s, which was taken over from '
                     '%(host)s, is left alone: its task was %(before)s at the '
                     'takeover, and is %(now)s now.', {
                         'instance': instance.uuid, 'host': job.taken.host,
                         'before': job.taken.task or 'none',
                         'now': instance.task_state or 'none'})
            return True
        if instance.task_state in (
                task_states.RESCUING, task_states.UNRESCUING):
            if not self._end_rescue(context, instance, job):
                return False
        if instance.task_state in _SWITCHING and (
                self._state_of(instance, job) is None):
            return False
        if instance.task_state == task_states.SOFT_DELETING:
            # Nova's own recovery does nothing for it.
            user_requests.resume(context, instance.uuid, instance.task_state)
            upstream.soft_delete(self._source, context, instance)
            return True
        # After all these tasks, Nova's recovery would leave a server without a
        # machine that Nova shows as running, or in ERROR.
        if instance.vm_state == vm_states.SHELVED_OFFLOADED and (
                instance.task_state in (None, task_states.SPAWNING)):
            return self._end_unshelving(context, instance, job)
        if instance.task_state in _SHELVING:
            return self._end_shelving(context, instance, job)
        if instance.task_state is not None:
            user_requests.resume(context, instance.uuid, instance.task_state)
        if instance.task_state in _BEGUN:
            _begin(instance, job)
        self._recover(context, instance)
        return True

    def _state_of(self, instance: objects.Instance, job: _Job
                  ) -> states.Meaning | None:
        """Return what the provision state of an instance's node means.

        :returns: None as long as Ironic is at work on the node
        """
        found = upstream.provision_of(self._source, instance)
        if not found.meaning.is_under_way:
            return found.meaning
        if not job.is_told and job.waited >= _PATIENCE:
            job.is_told = True
            LOG.warning(
                'The recovery of instance %(instance)s, which was taken over '
                'from %(host)s, has waited for %(minutes)d minutes, because '
                'node %(node)s is in provision state %(state)s: end that, '
                'with "openstack baremetal node unhold %(node)s" if the node '
                'is on hold, or "openstack baremetal node abort %(node)s" if '
                'it waits for its machine.', {
                    'instance': instance.uuid, 'host': job.taken.host,
                    'minutes': job.waited / 60, 'node': found.node,
                    'state': found.state})
        return None

    def _end_shelving(self, context: nova_context.RequestContext,
                      instance: objects.Instance, job: _Job) -> bool:
        """Finish a shelving that has begun, and end one that has not.

        Nova switches the machine off first. All steps after that can be
        repeated without harm, and one cannot see which of them were done:
        unbind the ports, undeploy the node, detach the volumes, free the
        allocation.

        :returns: whether it has come to an end
        """
        state = self._state_of(instance, job)
        if state is None:
            return False
        has_machine = state is states.Meaning.RUNS
        was_shelved = instance.vm_state == vm_states.SHELVED
        if not was_shelved and has_machine and self._runs(instance):
            _end_task(instance, instance.vm_state)
        elif was_shelved or compute_utils.is_volume_backed_instance(
                context, instance):
            upstream.offload(self._source, context, instance)
            LOG.info('Instance %(instance)s was being shelved when %(host)s '
                     'died: it is shelved now.', {
                         'instance': instance.uuid, 'host': job.taken.host})
        else:
            # Nova does not undeploy one with disks of its own: the ironic
            # driver cannot keep them.
            _end_task(instance, vm_states.STOPPED if has_machine
                      else vm_states.ERROR)
        return True

    def _end_unshelving(self, context: nova_context.RequestContext,
                        instance: objects.Instance, job: _Job) -> bool:
        """Wait for Ironic if it is deploying; otherwise shelve the instance.

        An instance without a task was shelved except for the last step.

        :returns: whether it has come to an end
        """
        if instance.task_state is None:
            upstream.leave_offloaded(self._source, instance)
            return True
        state = self._state_of(instance, job)
        if state is None:
            return False
        if state is states.Meaning.RUNS:
            upstream.finish_unshelving(self._source, context, instance)
        else:
            upstream.undo_unshelving(self._source, context, instance)
        LOG.info('Instance %(instance)s was being unshelved when %(host)s '
                 'died: it is %(state)s now.', {
                     'instance': instance.uuid, 'host': job.taken.host,
                     'state': instance.vm_state})
        return True

    def _carry_on_build(self, context: nova_context.RequestContext,
                        instance: objects.Instance, job: _Job) -> bool:
        """Wait for a deployment that Ironic does, as its service would have.

        A build that had not reached Ironic ends in ERROR. If its node is in a
        pool, and the build had not reached that node, others can be built
        there then.
        """
        state: states.Meaning | None = states.Meaning.NONE
        if instance.task_state == task_states.SPAWNING:
            state = self._state_of(instance, job)
        if state is None:
            return False
        if state is states.Meaning.RUNS:
            upstream.finish_build(self._source, context, instance)
            LOG.info('Instance %(instance)s was being built when %(host)s '
                     'died: it is active now.', {
                         'instance': instance.uuid, 'host': job.taken.host})
            return True
        # A service that has not died after all may be about to change the
        # node of an instance that it spawns. The guards keep it from beginning
        # to spawn one that has been given up.
        is_elsewhere = pools.is_pool(instance.node) and (
            instance.task_state != task_states.SPAWNING)
        try:
            marks.give_up(context, instance, job.taken.host)
        except exception.InstanceUpdateConflict:
            return False
        if is_elsewhere:
            self._abandon(context, instance, job.taken.host)
        return True

    def _abandon(self, context: nova_context.RequestContext,
                 instance: objects.Instance, host: str) -> None:
        """Free what is reserved for a build, if that is possible."""
        try:
            upstream.abandon_build(self._source, context, instance)
        except Exception:
            LOG.exception('Cannot free what is reserved for instance '
                          '%(instance)s, whose build has ended because '
                          '%(host)s has died: delete the instance.', {
                              'instance': instance.uuid, 'host': host})

    def _recover(self, context: nova_context.RequestContext,
                 instance: objects.Instance) -> None:
        """Let Nova do what it does with each instance at its start."""
        if instance.vm_state in (
                vm_states.BUILDING, vm_states.SOFT_DELETED) and (
                    instance.task_state == task_states.DELETING):
            # Nova would see only that state, and forget the delete.
            instance.vm_state = vm_states.ERROR
        was = instance.task_state
        with self._lock:
            self._at_nova.add(instance.uuid)
        try:
            upstream.recover(self._source, context, instance)
        finally:
            with self._lock:
                self._at_nova.discard(instance.uuid)
        if was is None:
            return
        # If it is deleted, this raises, and nothing is left to do.
        instance.refresh()
        if was == task_states.DELETING:
            raise RuntimeError('Nova has not deleted it: see the log.')
        if instance.task_state == was:
            # Nova would find it in the service's queue after a restart.
            _end_task(instance, instance.vm_state)

    def _runs(self, instance: objects.Instance) -> bool:
        """Return whether Ironic has an instance's machine switched on."""
        now = self._source.get_info(instance, use_cache=False)
        return bool(now.state == power_state.RUNNING)

    def _end_rescue(self, context: nova_context.RequestContext,
                    instance: objects.Instance, job: _Job) -> bool:
        """Look at a rescue, which Nova's recovery leaves alone.

        Nova switches the machine off before it asks Ironic for the rescue.

        :returns: whether the rescue has come to an end
        """
        state = self._state_of(instance, job)
        if state is None:
            return False
        if state is states.Meaning.RESCUED:
            _end_task(instance, vm_states.RESCUED)
        elif state is not states.Meaning.RUNS:
            _end_task(instance, vm_states.ERROR)
        elif instance.task_state == task_states.UNRESCUING:
            _end_task(instance, vm_states.ACTIVE)
        else:
            _end_task(instance, self._run_again(context, instance) if (
                instance.vm_state == vm_states.ACTIVE) else instance.vm_state)
        return True

    def _run_again(self, context: nova_context.RequestContext,
                   instance: objects.Instance) -> str:
        """Switch the machine of an instance on, unless it runs.

        :returns: the state of the instance then
        """
        try:
            if not self._runs(instance):
                self._source.power_on(
                    context, instance, instance.get_network_info())
        except Exception:
            LOG.exception('Cannot switch on the machine of instance %s, which '
                          'was to be rescued: its user may start it.',
                          instance.uuid)
            return vm_states.STOPPED
        return vm_states.ACTIVE


def left_by(context: nova_context.RequestContext, instance: objects.Instance
            ) -> str | None:
    """Return the dead service that has left something under way.

    :param context: with the rights of an administrator
    :param instance: an instance of this service, with something under way
    :returns: the name of the service; None if nobody has recorded that this
        one has taken the instance over since that was asked for
    """
    return actions.failed_over(
        context, instance.uuid, CONF.host, user_requests.asked_at(
            context, instance.uuid, instance.task_state or ''))


def _begin(instance: objects.Instance, job: _Job) -> None:
    """Mark a task that no service has begun as begun by this one.

    Otherwise Nova's recovery would treat a reboot as done, and would at once
    reclaim what was being restored, because the restore has removed the time
    of the delete.
    """
    was = instance.task_state
    instance.task_state = _BEGUN[was]
    if was == task_states.RESTORING:
        instance.vm_state = vm_states.STOPPED
    instance.save(expected_task_state=[was])
    job.taken = dataclasses.replace(job.taken, task=instance.task_state)


def _end_task(instance: objects.Instance, vm_state: str) -> None:
    """End a task with a state, if it is still that task."""
    was = instance.task_state
    instance.vm_state = vm_state
    instance.task_state = None
    instance.save(expected_task_state=[was])
    LOG.info('Instance %(instance)s was %(task)s when its service died: it is '
             '%(state)s now.', {'instance': instance.uuid, 'task': was,
                                'state': vm_state})
