# SPDX-License-Identifier: Apache-2.0

"""Processes that outlive the command that started them.

A file has what is needed to find, signal or restart a process, so any command
can do it. Each process also has the lab's directory in its environment: this
finds a process whose file was not written, or whose parent has ended.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
import contextlib
import json
import os
import pathlib
import signal
import subprocess

import psutil

from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab import waiting

#: The variable with the lab's directory, in the environment of each process.
MARK = 'NOVA_IRONIC_RING_LAB'

# Seconds.
_KILL_TIMEOUT = 10
_POLL = 0.05


def environment(directory: pathlib.Path,
                extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a process of a lab.

    :param directory: the lab's directory
    :param extra: variables to add
    """
    # A user's own OS_* would lead the services' clients to another cloud, and
    # a proxy away from loopback.
    inherited = {key: value for key, value in os.environ.items()
                 if not key.startswith('OS_')
                 and not key.lower().endswith('_proxy')}
    # A service that sets the title of its process overwrites its environment,
    # and with it the mark, unless SPT_NOENV forbids it.
    marks = {MARK: str(directory), 'SPT_NOENV': '1',
             # Warnings would hide the cause of a failure in the last lines.
             'PYTHONWARNINGS': 'ignore'}
    return inherited | marks | dict(extra or {})


class Process:
    """A process of a lab, known by its name."""

    def __init__(self, directory: pathlib.Path, name: str) -> None:
        """Name a process, which need not exist.

        :param directory: the lab's directory
        :param name: the name, unique in the lab
        """
        self.directory = directory
        self.name = name
        self.log = directory / 'log' / f'{name}.log'
        self._file = directory / 'run' / f'{name}.json'

    def define(self, argv: Sequence[str],
               env: Mapping[str, str] | None = None) -> 'Process':
        """Set what the process runs.

        :param argv: the program and its arguments
        :param env: variables to add to its environment
        :returns: this object
        """
        self._write({'argv': list(argv), 'env': dict(env or {})})
        return self

    def start(self) -> None:
        """Start the process, unless it runs.

        :raises LabError: if the program cannot be started
        """
        if self.state != 'stopped':
            return
        record = self._read()
        with open(self.log, 'ab') as log:
            try:
                child = subprocess.Popen(
                    record['argv'], stdin=subprocess.DEVNULL, stdout=log,
                    stderr=subprocess.STDOUT, cwd=self.directory,
                    env=environment(self.directory, record['env']),
                    start_new_session=True)
            except OSError as error:
                raise errors.LabError(
                    f'{self.name} cannot be started: {error}.') from error
        self._write(record | {'pid': child.pid, 'wanted': True,
                              'started': _start_time(child.pid)})

    @property
    def exists(self) -> bool:
        """Whether the process was defined, running or not."""
        return self._file.exists()

    @property
    def state(self) -> str:
        """``running``, ``paused`` or ``stopped``."""
        process = self._find()
        try:
            if process is None:
                return 'stopped'
            paused = process.status() == psutil.STATUS_STOPPED
        except psutil.NoSuchProcess:
            return 'stopped'
        return 'paused' if paused else 'running'

    def terminate(self) -> None:
        """Ask the process to end."""
        self._signal(signal.SIGTERM, wanted=False)
        # A paused process gets the first signal only when it continues.
        self._signal(signal.SIGCONT)

    def stop(self, timeout: float = 30) -> None:
        """Ask the process to end, and kill it if it does not.

        :param timeout: seconds after which it is killed
        """
        self.terminate()
        if not _wait(lambda: self._find() is None, timeout):
            self.kill()

    def kill(self) -> None:
        """End the process at once, as a crash would."""
        self._signal(signal.SIGKILL, wanted=False)
        _wait(lambda: self._find() is None, _KILL_TIMEOUT)

    def forget(self) -> None:
        """End the process for good, and keep only its log, renamed."""
        self.kill()
        self._file.unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            self.log.replace(self.log.with_suffix('.log.old'))

    def pause(self) -> None:
        """Freeze the process, as a hang would."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen process continue."""
        self._signal(signal.SIGCONT)

    def reload(self) -> None:
        """Let the process read its configuration again."""
        self._signal(signal.SIGHUP)

    def report(self) -> None:
        """Let the process write a Guru Meditation Report into its log."""
        self._signal(signal.SIGUSR2)

    def processor_time(self) -> float:
        """Return the processor time of it and its children, in seconds."""
        found = self._find()
        if found is None:
            return 0.0
        return sum(each.cpu_times().user + each.cpu_times().system
                   for each in [found, *found.children(recursive=True)])

    def memory(self) -> int:
        """Return the memory that it and its children use, in bytes."""
        found = self._find()
        if found is None:
            return 0
        return sum(each.memory_info().rss
                   for each in [found, *found.children(recursive=True)])

    def threads(self) -> int:
        """Return how many threads it and its children have."""
        found = self._find()
        if found is None:
            return 0
        return sum(each.num_threads()
                   for each in [found, *found.children(recursive=True)])

    def check(self) -> None:
        """Check that the process runs, unless it was told to end.

        :raises LabError: if it has died; the message has its log's last lines
        """
        if self.state == 'stopped' and self._read().get('wanted'):
            raise self.trouble('has died')

    def trouble(self, what: str) -> errors.LabError:
        """Return an error that shows where to look.

        :param what: what is wrong with the process
        """
        return errors.LabError(
            f'{self.name} {what}; its log is {self.log}, and its last lines '
            f'are:\n{self.last_lines()}')

    def child(self, names: Collection[str]) -> psutil.Process:
        """Return a program that the process has started.

        :param names: the names that the system may have for it
        :raises LabError: if there is none
        """
        found = self._find()
        for each in found.children(recursive=True) if found else ():
            with contextlib.suppress(psutil.NoSuchProcess):
                if each.name() in names:
                    return each
        raise self.trouble(f'has no process {" or ".join(names)}')

    def listens(self, port: int) -> bool:
        """Return whether the process, or a child of it, listens on a port.

        :param port: the port's number
        """
        process = self._find()
        if process is None:
            return False
        try:
            return any(
                connection.status == psutil.CONN_LISTEN
                and connection.laddr.port == port
                for each in [process, *process.children(recursive=True)]
                for connection in each.net_connections('tcp'))
        except psutil.NoSuchProcess:
            return False

    def last_lines(self, count: int = 5) -> str:
        """Return the end of the log, for an error message.

        :param count: how many lines
        """
        try:
            lines = self.log.read_text(errors='replace').splitlines()
        except FileNotFoundError:
            lines = []
        return '\n'.join(
            f'    {line}' for line in lines[-count:]) or '    (none)'

    def _signal(self, number: int, wanted: bool | None = None) -> None:
        """Send a signal, if the process is there.

        :param wanted: whether it is to be running from now on, if that changes
        """
        process = self._find()
        if wanted is not None and self.exists:
            self._write(self._read() | {'wanted': wanted})
        if process is None:
            return
        try:
            # Some services have workers, or a server in a process group of
            # its own.
            children = process.children(recursive=True)
            os.killpg(process.pid, number)
        except (psutil.NoSuchProcess, ProcessLookupError):
            return
        if number in (signal.SIGSTOP, signal.SIGCONT):
            for child in children:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.send_signal(number)

    def _find(self) -> psutil.Process | None:
        try:
            record = self._read()
            process = psutil.Process(record['pid'])
            # The system gives the ids of ended processes to new ones.
            if _start_time(process.pid) != record['started']:
                return None
            if process.status() == psutil.STATUS_ZOMBIE:
                _reap(process.pid)
                return None
        except (KeyError, errors.LabError, psutil.Error, OSError):
            return None
        return process

    def _read(self) -> dict:
        try:
            return json.loads(self._file.read_text())
        except FileNotFoundError:
            raise errors.LabError(
                f'There is no process {self.name} in this lab.') from None

    def _write(self, record: dict) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        # If this process is killed meanwhile, the old file stays as it is.
        new = self._file.with_suffix('.new')
        new.write_text(json.dumps(record))
        new.replace(self._file)


def has_ended(process: psutil.Process) -> bool:
    """Return whether a program has ended, whoever has started it.

    :param process: the program
    """
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _start_time(pid: int) -> int:
    """Return when a process was started, in clock ticks since the boot.

    psutil's start time changes when the machine's clock is set; this does not.
    """
    # Field 22; the second is in brackets, and any character can be in it.
    # See proc(5).
    stat = pathlib.Path(f'/proc/{pid}/stat').read_text()
    return int(stat.rpartition(')')[2].split()[19])


def _reap(pid: int) -> None:
    """Remove a zombie process, if it is a child of this process."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass


def _wait(done: Callable[[], bool], timeout: float) -> bool:
    """Wait until something is true, and return whether it is.

    psutil's own wait for a process never ends for a zombie whose parent does
    not collect its exit status.
    """
    return waiting.until(done, timeout, _POLL)


def leftovers(directory: pathlib.Path) -> Iterator[psutil.Process]:
    """Find all processes of a lab, whoever started them.

    :param directory: the lab's directory
    """
    for process in psutil.process_iter():
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                _reap(process.pid)
            elif process.environ().get(MARK) == str(directory):
                yield process
        except psutil.Error:
            continue


def sweep(directory: pathlib.Path) -> None:
    """Kill whatever is left of a lab.

    :param directory: the lab's directory
    :raises LabError: if something cannot be killed
    """
    def swept() -> bool:
        found = list(leftovers(directory))
        for process in found:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                pass
        # Repeat this until there are none: one may have started another
        # meanwhile.
        return not found

    if not _wait(swept, _KILL_TIMEOUT):
        left = ', '.join(str(process.pid) for process in leftovers(directory))
        raise errors.LabError(
            f'Processes of the lab in {directory} cannot be killed: {left}.')
