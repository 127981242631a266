package nvml

import (
	"encoding/binary"
	"fmt"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/google/uuid"

	"sluice.dev/sluice/nodeagent"
)

func (r *reading) health() {
	h := &r.card.Health
	h.RecoveryAction = r.recovery()
	r.ecc()
	if r.session.has(symbolRemap) {
		if corrected, uncorrected, pending, failed, ret := r.handle.GetRemappedRows(); r.ok("health.rowRemap", ret) {
			h.RowRemap = &nodeagent.RowRemap{Corrected: corrected, Uncorrected: uncorrected, Pending: pending, Failed: failed}
		}
	}
	r.slowdown()
}

// recoveries are the driver's words for what mends a card, as it numbers them.
var recoveries = []string{
	"none", "gpuReset", "nodeReboot", "drainP2P", "drainAndReset", "recoverIMEX", "busReset", "systemReboot",
}

func (r *reading) recovery() string {
	values := []gonvml.FieldValue{{FieldId: gonvml.FI_DEV_GET_GPU_RECOVERY_ACTION}}
	if !r.ok("health.recoveryAction", r.handle.GetFieldValues(values)) {
		return ""
	}
	ret := gonvml.Return(values[0].NvmlReturn)
	if ret == gonvml.ERROR_INVALID_ARGUMENT { // of a driver that does not know the field
		return ""
	}
	if !r.ok("health.recoveryAction", ret) {
		return ""
	}
	action := binary.NativeEndian.Uint32(values[0].Value[:4])
	if action < uint32(len(recoveries)) {
		return recoveries[action]
	}
	return fmt.Sprintf("action%d", action)
}

func (r *reading) ecc() {
	on, _, ret := r.handle.GetEccMode()
	if !r.ok("health.ecc", ret) || on != gonvml.FEATURE_ENABLED {
		return
	}
	var out nodeagent.ECC
	for _, c := range []struct {
		of      *uint64
		kind    gonvml.MemoryErrorType
		counter gonvml.EccCounterType
	}{
		{&out.Corrected, gonvml.MEMORY_ERROR_TYPE_CORRECTED, gonvml.VOLATILE_ECC},
		{&out.Uncorrected, gonvml.MEMORY_ERROR_TYPE_UNCORRECTED, gonvml.VOLATILE_ECC},
		{&out.LifetimeUncorrected, gonvml.MEMORY_ERROR_TYPE_UNCORRECTED, gonvml.AGGREGATE_ECC},
	} {
		n, ret := r.handle.GetTotalEccErrors(c.kind, c.counter)
		if !r.ok("health.ecc", ret) {
			return
		}
		*c.of = n
	}
	r.card.Health.ECC = &out
}

// hardware are the reasons for held-down clocks that point at hardware. Idle cards
// and power limits that somebody set are none.
var hardware = []struct {
	bit  uint64
	name string
}{{8, "hwSlowdown"}, {32, "swThermal"}, {64, "hwThermal"}, {128, "powerBrake"}}

func (r *reading) slowdown() {
	var bits uint64
	var ret gonvml.Return
	switch {
	case r.session.has(symbolClocks):
		bits, ret = r.handle.GetCurrentClocksEventReasons()
	case r.session.has(symbolThrottle):
		bits, ret = r.handle.GetCurrentClocksThrottleReasons()
	default:
		return
	}
	if !r.ok("health.slowdown", ret) {
		return
	}
	for _, reason := range hardware {
		if bits&reason.bit != 0 {
			r.card.Health.Slowdown = append(r.card.Health.Slowdown, reason.name)
		}
	}
}

// fabric reads the multi-node NVLink domain. It counts only when the fabric manager is
// done, well, and named the domain.
func (r *reading) fabric() {
	if !r.session.has(symbolFabric) {
		return
	}
	info, ret := r.handle.GetGpuFabricInfo()
	if !r.ok("fabric", ret) {
		return
	}
	switch info.State {
	case gonvml.GPU_FABRIC_STATE_NOT_SUPPORTED:
	case gonvml.GPU_FABRIC_STATE_NOT_STARTED:
		r.card.Fabric = &nodeagent.Fabric{State: "notStarted"}
	case gonvml.GPU_FABRIC_STATE_IN_PROGRESS:
		r.card.Fabric = &nodeagent.Fabric{State: "inProgress"}
	case gonvml.GPU_FABRIC_STATE_COMPLETED:
		switch {
		case info.Status != 0:
			r.card.Fabric = &nodeagent.Fabric{State: "failed"}
			r.fail("fabric", gonvml.Return(int32(info.Status)))
		case info.ClusterUuid != [16]uint8{}: // zero: one node alone
			r.card.Fabric = &nodeagent.Fabric{State: "completed", ClusterUUID: uuid.UUID(info.ClusterUuid).String(), Clique: info.CliqueId}
		}
	}
}
