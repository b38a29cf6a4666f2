# SPDX-License-Identifier: Apache-2.0

"""Measures what it costs to send a service its instances: CPU time and bytes.

In each pass, Nova's resource tracker asks conductor for the instances of a
compute node, while it holds its lock, and gets all of them in one message.
With pools, these can be thousands. This program does the work of conductor and
then that of nova-compute, without a database and without RabbitMQ.
"""

import base64
import datetime
import os
import time
import uuid

from nova import context as nova_context
from nova import objects
from nova.objects import base
from oslo_serialization import jsonutils

objects.register_all()

_INSTANCES = 3000
_USER_DATA = 16 * 1024
# The largest message for RabbitMQ, in bytes: from release 4.0 on, and before.
_LARGEST = {'4.0': 16 * 2**20, '3.13': 128 * 2**20}


def _instance(number: int, user_data: str | None) -> objects.Instance:
    """Make a usual instance, with the fields that the tracker reads."""
    now = datetime.datetime.now(datetime.timezone.utc)
    flavor = objects.Flavor(
        id=1, name='bm.large', memory_mb=524288, vcpus=128, root_gb=1000,
        ephemeral_gb=0, flavorid='bm', swap=0, rxtx_factor=1.0,
        vcpu_weight=0, disabled=False, is_public=True, description=None,
        created_at=now, updated_at=None, deleted_at=None, deleted=False,
        extra_specs={'resources:VCPU': '0', 'resources:MEMORY_MB': '0',
                     'resources:DISK_GB': '0', 'trait:CUSTOM_FAST': 'required',
                     'resources:CUSTOM_BAREMETAL': '1'})
    made = objects.Instance(
        id=number, uuid=str(uuid.uuid4()), user_id=uuid.uuid4().hex,
        project_id=uuid.uuid4().hex, image_ref=str(uuid.uuid4()),
        kernel_id='', ramdisk_id='', hostname=f'web-{number}', launch_index=0,
        key_name='key', key_data='ssh-rsa ' + 'A' * 372, power_state=1,
        vm_state='active', task_state=None, memory_mb=flavor.memory_mb,
        vcpus=flavor.vcpus, root_gb=flavor.root_gb, ephemeral_gb=0,
        host='compute-1', node='compute-1.CUSTOM_BAREMETAL.fe94b921',
        compute_id=1, instance_type_id=1, user_data=user_data,
        reservation_id='r-abcdefgh', launched_at=now, terminated_at=None,
        availability_zone='az1', display_name=f'web-{number}',
        display_description=f'web-{number}', launched_on='compute-1',
        locked=False, root_device_name='/dev/sda', config_drive='True',
        progress=0, cleaned=False, hidden=False, flavor=flavor,
        old_flavor=None, new_flavor=None, numa_topology=None,
        migration_context=None, resources=None, created_at=now,
        updated_at=now, deleted_at=None, deleted=False, system_metadata={
            f'image_property_{each}': f'value-{each}' for each in range(20)})
    made.obj_reset_changes()
    return made


def _measure(name: str, user_data: str | None) -> None:
    context, serializer = (
        nova_context.get_admin_context(), base.NovaObjectSerializer())
    made = objects.InstanceList(objects=[
        _instance(number, user_data) for number in range(_INSTANCES)])
    begin = time.process_time()
    message = jsonutils.dumps(serializer.serialize_entity(context, made))
    sent = time.process_time()
    found = serializer.deserialize_entity(context, jsonutils.loads(message))
    read = time.process_time()
    assert len(found) == _INSTANCES
    print(f'{name:20}{len(message) / 2**20:8.1f} MiB'
          f'{sent - begin:8.2f} s{read - sent:8.2f} s   ' + ', '.join(
              f'RabbitMQ {release}: '
              f'{int(largest / len(message) * _INSTANCES)}'
              for release, largest in _LARGEST.items()))


def main() -> None:
    """Print what a list of instances costs, without and with user data."""
    print(f'{_INSTANCES} instances: the message, conductor, nova-compute, and '
          'how many fit into the largest message')
    _measure('no user data', None)
    _measure('16 KiB of it each', base64.b64encode(
        os.urandom(_USER_DATA * 3 // 4)).decode())


if __name__ == '__main__':
    main()
