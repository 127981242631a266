package nvml

import (
	"fmt"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"sluice.dev/sluice/nodeagent"
)

// session is the driver between Init and Shutdown.
type session struct {
	lib    Library
	driver nodeagent.Driver
	errors []nodeagent.FieldError
	lacks  map[string]bool            // symbols that this driver does not have
	grids  map[string]*nodeagent.Grid // by UUID: what a card can be cut into does not change
	events *events                    // nil: there are none, see errors
}

// open asks for the driver. Unless it answers, the state says why it does not.
func open(lib Library) (*session, nodeagent.State, string) {
	if ret := lib.Init(); ret != gonvml.SUCCESS {
		state, why := stateOf(ret)
		return nil, state, why
	}
	s := &session{lib: lib, lacks: map[string]bool{}, grids: map[string]*nodeagent.Grid{}}
	for _, symbol := range []string{
		symbolMIG, symbolNames, symbolRemap, symbolClocks, symbolThrottle, symbolFabric,
		symbolLinkType, symbolArch, symbolPlaces, symbolInstances,
	} {
		s.lacks[symbol] = lib.Extensions().LookupSymbol(symbol) != nil
	}
	var ret gonvml.Return
	if s.driver.Version, ret = lib.SystemGetDriverVersion(); ret != gonvml.SUCCESS {
		s.fail("driver.version", ret)
	}
	if s.driver.NVML, ret = lib.SystemGetNVMLVersion(); ret != gonvml.SUCCESS {
		s.fail("driver.nvml", ret)
	}
	if v, ret := lib.SystemGetCudaDriverVersion(); ret == gonvml.SUCCESS {
		s.driver.CUDA = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
	} else {
		s.fail("driver.cuda", ret)
	}
	return s, nodeagent.Ready, ""
}

func (s *session) fail(field string, ret gonvml.Return) {
	s.errors = append(s.errors, fieldError(field, ret))
}

func (s *session) has(symbol string) bool { return !s.lacks[symbol] }

// close lets the driver go. What waits for events is over before it returns, since
// waiting in a library that is gone is not defined.
func (s *session) close() {
	if s.events != nil {
		s.events.close()
	}
	_ = s.lib.Shutdown()
}

// stateOf is what an answer to the first calls means for the node.
func stateOf(ret gonvml.Return) (nodeagent.State, string) {
	said := " (" + Code(ret) + ")"
	switch ret {
	case gonvml.ERROR_LIBRARY_NOT_FOUND:
		return nodeagent.NoDriver, "libnvidia-ml.so.1 is not found: the driver is not installed, or not mounted into the agent's container" + said
	case gonvml.ERROR_DRIVER_NOT_LOADED:
		return nodeagent.NoDriver, "the driver's kernel module is not loaded" + said
	case gonvml.ERROR_GPU_NOT_FOUND, gonvml.ERROR_NOT_FOUND:
		return nodeagent.NoDevices, "the driver finds no card" + said
	case gonvml.ERROR_NO_PERMISSION:
		return nodeagent.NoPermission, "the agent may not open the driver's device files: its container needs them and the rights to read them" + said
	case gonvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return nodeagent.DriverChanged, "the driver was replaced: its library and its kernel module are of different versions until the module is loaded anew or the agent starts anew" + said
	default:
		return nodeagent.Failed, "the driver does not start" + said
	}
}

func fieldError(field string, ret gonvml.Return) nodeagent.FieldError {
	code := Code(ret)
	message := "the driver answers " + code
	switch {
	case ret == gonvml.ERROR_NO_PERMISSION && (field == "instances" || field == "grid"):
		message = "needs root, or /proc/driver/nvidia/capabilities/mig/config"
	case ret == gonvml.ERROR_RESET_REQUIRED:
		message = "the card has to be reset first"
	case ret == gonvml.ERROR_INSUFFICIENT_POWER:
		message = "the card's power cable is not attached"
	case ret == gonvml.ERROR_IRQ_ISSUE:
		message = "the kernel sees interrupt trouble with the card"
	}
	return nodeagent.FieldError{Field: field, Code: code, Message: message}
}
