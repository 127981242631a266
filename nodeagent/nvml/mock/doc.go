// Package mock is a node with GPUs for tests and for clusters without any: go-nvml's
// mock servers, made to answer as hardware does.
//
// What go-nvml's servers leave out or have wrong is here: the placements and ids of
// hardware for each product, overlap and a second +me refused, MIG mode that waits for
// a reset where it does, GPU instances that stay while a compute instance lives in
// them, MIG devices by index with holes and new names at each cut, events, health,
// NVLinks, layouts that no boot and no reset outlives. A card that was lost while a
// session was open stays lost for that session. What an agent does not call is still
// go-nvml's own, which panics with the name of the call.
//
// # Injecting
//
// Node.Do takes one command, Node.Script a file of them, Node.Serve a socket: a line
// in, "ok" or "error: …" out, after lines of answer if there are any. Words are separated
// by spaces; # begins a comment. <card> is its place on the bus from 0, or "all".
//
//	mig <card> on|off                 as after a reset
//	mig <card> pending-on|pending-off wanted, and not yet
//	cut <card> <slice>...             a slice: profile[@start][:<n>c[,<n>c]...|:-]
//	                                  2g.10gb  3g.20gb@4  3g.20gb@0:1c,2c  1g.5gb:-
//	clear <card>                      destroys the layout
//	drop <card> <index>               destroys the MIG device with this index, and its GPU instance
//	xid <card> <code> [<gpu instance> [<compute instance>]]
//	lose <card>                       GPU_IS_LOST; gone: not even counted
//	gone <card>
//	return <card>                     as after a reset, with the layout it had
//	reset <card>                      mode pending becomes current, layout and errors go
//	reboot                            a new boot id; layouts go, and MIG mode but on Ampere
//	recovery <card> none|gpuReset|nodeReboot|drainP2P|drainAndReset|unknown
//	ecc <card> <corrected> <uncorrected> <lifetime> | off
//	remap <card> <corrected> <uncorrected> [pending] [failed]
//	slow <card> <bits>                reasons for held-down clocks: 8 hardware, 64 heat
//	fabric <card> completed <cluster uuid> <clique> | inProgress | none
//	links <card> <n> [switched]
//	fail <card>|library <call> <code> a call answers so: fail 3 GetGpuInstances NO_PERMISSION
//	mend <card>|library               no call fails any more
//	strange <card>                    the driver lists a profile that no table knows
//	driver ok|missing|unloaded|forbidden|mismatch|unknown
//	old <symbol>...                   the library lacks these; a call of one is a panic
//	silence on|off                    every call hangs, and so does the agent
//	strategy none|single|mixed        of the device plugin, see Node.PluginConfig
//	share <resource> <replicas> [mps] [renamed]
//	show                              the node as it is
package mock
