package nvml

import (
	"fmt"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Library is what a Probe calls of NVML. None of it changes anything on a card.
type Library interface {
	Extensions() gonvml.ExtendedInterface
	Init() gonvml.Return
	Shutdown() gonvml.Return
	SystemGetDriverVersion() (string, gonvml.Return)
	SystemGetNVMLVersion() (string, gonvml.Return)
	SystemGetCudaDriverVersion() (int, gonvml.Return)
	DeviceGetCount() (int, gonvml.Return)
	DeviceGetHandleByIndex(index int) (gonvml.Device, gonvml.Return)
	EventSetCreate() (gonvml.EventSet, gonvml.Return)
}

// Names is how a fake device says what a profile is called: go-nvml's own call for it
// returns a handle into the real library, which no fake can make.
type Names interface {
	ProfileName(enum int) (string, gonvml.Return)
}

// System is the library of this node, found where the dynamic linker finds it; path
// names another. Nothing is loaded before a Probe runs.
func System(path string) Library {
	if path == "" {
		return gonvml.New()
	}
	return gonvml.New(gonvml.WithLibraryPath(path))
}

// device is what is called of a card or MIG device. It is here so that the compiler
// lists what a fake owes.
type device interface {
	GetUUID() (string, gonvml.Return)
	GetName() (string, gonvml.Return)
	GetSerial() (string, gonvml.Return)
	GetMinorNumber() (int, gonvml.Return)
	GetPciInfo() (gonvml.PciInfo, gonvml.Return)
	GetArchitecture() (gonvml.DeviceArchitecture, gonvml.Return)
	GetCudaComputeCapability() (int, int, gonvml.Return)
	GetMemoryInfo() (gonvml.Memory, gonvml.Return)

	GetMigMode() (int, int, gonvml.Return)
	GetGpuInstanceProfileInfo(enum int) (gonvml.GpuInstanceProfileInfo, gonvml.Return)
	GetGpuInstancePossiblePlacements(*gonvml.GpuInstanceProfileInfo) ([]gonvml.GpuInstancePlacement, gonvml.Return)
	GetGpuInstances(*gonvml.GpuInstanceProfileInfo) ([]gonvml.GpuInstance, gonvml.Return)
	GetMaxMigDeviceCount() (int, gonvml.Return)
	GetMigDeviceHandleByIndex(index int) (gonvml.Device, gonvml.Return)
	GetGpuInstanceId() (int, gonvml.Return)
	GetComputeInstanceId() (int, gonvml.Return)
	GetAttributes() (gonvml.DeviceAttributes, gonvml.Return)

	GetFieldValues([]gonvml.FieldValue) gonvml.Return
	GetEccMode() (gonvml.EnableState, gonvml.EnableState, gonvml.Return)
	GetTotalEccErrors(gonvml.MemoryErrorType, gonvml.EccCounterType) (uint64, gonvml.Return)
	GetRemappedRows() (int, int, bool, bool, gonvml.Return)
	GetCurrentClocksEventReasons() (uint64, gonvml.Return)
	GetCurrentClocksThrottleReasons() (uint64, gonvml.Return)
	GetSupportedEventTypes() (uint64, gonvml.Return)
	RegisterEvents(types uint64, set gonvml.EventSet) gonvml.Return

	GetGpuFabricInfo() (gonvml.GpuFabricInfo, gonvml.Return)
	GetTopologyCommonAncestor(gonvml.Device) (gonvml.GpuTopologyLevel, gonvml.Return)
	GetNvLinkState(link int) (gonvml.EnableState, gonvml.Return)
	GetNvLinkRemoteDeviceType(link int) (gonvml.IntNvLinkDeviceType, gonvml.Return)
	GetNvLinkRemotePciInfo(link int) (gonvml.PciInfo, gonvml.Return)
}

var _ device = gonvml.Device(nil)

// Symbols that drivers in use may lack. A call of one that is missing ends the process
// inside the dynamic linker, so each is looked up first.
const (
	symbolMIG       = "nvmlDeviceGetMigMode"
	symbolNames     = "nvmlDeviceGetGpuInstanceProfileInfoV"
	symbolRemap     = "nvmlDeviceGetRemappedRows"
	symbolClocks    = "nvmlDeviceGetCurrentClocksEventReasons"
	symbolThrottle  = "nvmlDeviceGetCurrentClocksThrottleReasons"
	symbolFabric    = "nvmlDeviceGetGpuFabricInfo"
	symbolLinkType  = "nvmlDeviceGetNvLinkRemoteDeviceType"
	symbolArch      = "nvmlDeviceGetArchitecture"
	symbolPlaces    = "nvmlDeviceGetGpuInstancePossiblePlacements"
	symbolInstances = "nvmlDeviceGetGpuInstances"
)

// codes are NVML's answers without NVML_ERROR_, as people and scripts know them. The
// library's own words differ between drivers.
var codes = map[gonvml.Return]string{
	gonvml.SUCCESS:                         "SUCCESS",
	gonvml.ERROR_UNINITIALIZED:             "UNINITIALIZED",
	gonvml.ERROR_INVALID_ARGUMENT:          "INVALID_ARGUMENT",
	gonvml.ERROR_NOT_SUPPORTED:             "NOT_SUPPORTED",
	gonvml.ERROR_NO_PERMISSION:             "NO_PERMISSION",
	gonvml.ERROR_NOT_FOUND:                 "NOT_FOUND",
	gonvml.ERROR_INSUFFICIENT_SIZE:         "INSUFFICIENT_SIZE",
	gonvml.ERROR_INSUFFICIENT_POWER:        "INSUFFICIENT_POWER",
	gonvml.ERROR_DRIVER_NOT_LOADED:         "DRIVER_NOT_LOADED",
	gonvml.ERROR_TIMEOUT:                   "TIMEOUT",
	gonvml.ERROR_IRQ_ISSUE:                 "IRQ_ISSUE",
	gonvml.ERROR_LIBRARY_NOT_FOUND:         "LIBRARY_NOT_FOUND",
	gonvml.ERROR_FUNCTION_NOT_FOUND:        "FUNCTION_NOT_FOUND",
	gonvml.ERROR_CORRUPTED_INFOROM:         "CORRUPTED_INFOROM",
	gonvml.ERROR_GPU_IS_LOST:               "GPU_IS_LOST",
	gonvml.ERROR_RESET_REQUIRED:            "RESET_REQUIRED",
	gonvml.ERROR_OPERATING_SYSTEM:          "OPERATING_SYSTEM",
	gonvml.ERROR_LIB_RM_VERSION_MISMATCH:   "LIB_RM_VERSION_MISMATCH",
	gonvml.ERROR_IN_USE:                    "IN_USE",
	gonvml.ERROR_MEMORY:                    "MEMORY",
	gonvml.ERROR_NO_DATA:                   "NO_DATA",
	gonvml.ERROR_INSUFFICIENT_RESOURCES:    "INSUFFICIENT_RESOURCES",
	gonvml.ERROR_ARGUMENT_VERSION_MISMATCH: "ARGUMENT_VERSION_MISMATCH",
	gonvml.ERROR_NOT_READY:                 "NOT_READY",
	gonvml.ERROR_GPU_NOT_FOUND:             "GPU_NOT_FOUND",
	gonvml.ERROR_INVALID_STATE:             "INVALID_STATE",
	gonvml.ERROR_UNKNOWN:                   "UNKNOWN",
}

// Code is the name of one of NVML's answers: "GPU_IS_LOST".
func Code(ret gonvml.Return) string {
	if name, ok := codes[ret]; ok {
		return name
	}
	return fmt.Sprintf("CODE_%d", int32(ret))
}

// absent says that a card does not have what was asked for, which is no error.
func absent(ret gonvml.Return) bool {
	return ret == gonvml.ERROR_NOT_SUPPORTED || ret == gonvml.ERROR_FUNCTION_NOT_FOUND
}
