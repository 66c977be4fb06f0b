"""Drives the package `fleetpy`: lists, starts, stops and destroys. It ends with an error where it gets something else than it should.

usage: fleetpy_client.py ENDPOINT MACHINE-ID, with the token in FLEET_TOKEN. The only unit is app@1.service, which is inactive.
"""

import os
import sys

import fleetpy
from patience import eventually

NAME = "app@1.service"

endpoint, machine_id = sys.argv[1:]
client = fleetpy.Client(endpoint)
# It knows no tokens.
client._adapter._session.headers["Authorization"] = "Bearer " + os.environ["FLEET_TOKEN"]

[machine] = client.machines()
assert machine.id == machine_id and machine.ipaddr and machine.metadata == {}, machine
assert client.state() == []
[unit] = client.units()
assert (unit.name, unit.desired_state, unit.state) == (NAME, "inactive", "inactive"), unit.as_dict
assert unit._options[0] == ("Service", "ExecStart", "/usr/bin/app"), unit._options

assert unit.start() is True
eventually("launched", lambda: client.units()[0].state == "launched")
# With the machine of each unit. No later: a launched unit has a state.
[state] = client.state(full=True)
assert (state.id, state.unit, state.loaded) == (machine_id, NAME, True), state
assert (state.state, state.sub_state, state.ipaddr) == ("active", "running", machine.ipaddr), state

assert unit.stop() is True
eventually("the end of its state", lambda: client.state(unit_name=NAME) == [])
assert client.units()[0].state == "inactive"
assert unit.destroy() is True
assert client.units() == []
assert unit.destroy() is False
