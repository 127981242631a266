package mock

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/google/uuid"
)

func setMode(c *card, args []string) error {
	if len(args) != 1 {
		return errUsage
	}
	switch args[0] {
	case "on", "off":
		mode := gonvml.DEVICE_MIG_DISABLE
		if args[0] == "on" {
			mode = gonvml.DEVICE_MIG_ENABLE
		} else if len(c.instances) > 0 {
			return fmt.Errorf("it is cut: %d GPU instances", len(c.instances))
		}
		if len(c.model.Profiles) == 0 {
			return fmt.Errorf("a %s cannot be cut", c.model.Product)
		}
		c.current, c.pending = mode, mode
	case "pending-on":
		c.pending = gonvml.DEVICE_MIG_ENABLE
	case "pending-off":
		c.pending = gonvml.DEVICE_MIG_DISABLE
	default:
		return errUsage
	}
	return nil
}

// cut makes slices, each with a compute instance that fills it unless it says others.
// What was made before one is refused stays, as with nvidia-smi.
func cut(c *card, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	for _, word := range args {
		if err := c.slice(word); err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
	}
	return nil
}

func (c *card) slice(word string) error {
	place, parts, split := strings.Cut(word, ":")
	name, at, placed := strings.Cut(place, "@")
	p := c.model.profile(name)
	if p == nil {
		return fmt.Errorf("a %s has no such profile", c.model.Product)
	}
	start := -1
	if placed {
		v, err := strconv.Atoi(at)
		if err != nil || v < 0 {
			return fmt.Errorf("start %q: %w", at, errUsage)
		}
		start = v
	}
	computes := []int{p.Compute}
	if split {
		computes = nil
		for _, part := range strings.Split(parts, ",") {
			if part == "-" {
				continue
			}
			v, err := strconv.Atoi(strings.TrimSuffix(part, "c"))
			if err != nil {
				return fmt.Errorf("compute instance %q: %w", part, errUsage)
			}
			computes = append(computes, v)
		}
	}
	gi, ret := c.create(p, start)
	if ret != gonvml.SUCCESS {
		return refused(ret)
	}
	for _, n := range computes {
		if _, ret := gi.split(n); ret != gonvml.SUCCESS {
			return fmt.Errorf("compute instance of %d: %w", n, refused(ret))
		}
	}
	return nil
}

// refused names what the driver answers.
func refused(ret gonvml.Return) error {
	for name, r := range map[string]gonvml.Return{
		"NOT_SUPPORTED": gonvml.ERROR_NOT_SUPPORTED, "INVALID_ARGUMENT": gonvml.ERROR_INVALID_ARGUMENT,
		"INSUFFICIENT_RESOURCES": gonvml.ERROR_INSUFFICIENT_RESOURCES, "IN_USE": gonvml.ERROR_IN_USE,
	} {
		if r == ret {
			return fmt.Errorf("refused: %s", name)
		}
	}
	return fmt.Errorf("refused: answer %d", int(ret))
}

func drop(c *card, args []string) error {
	v, err := numbers(args, 1)
	if err != nil {
		return err
	}
	if v[0] >= len(c.slots) || c.slots[v[0]] == nil {
		return fmt.Errorf("it has no MIG device %d", v[0])
	}
	gi := c.slots[v[0]].gi
	_ = c.slots[v[0]].destroy()
	if len(gi.computes) == 0 {
		_ = gi.destroy()
	}
	return nil
}

// numbers reads words that are numbers from 0, at least so many.
func numbers(args []string, least int) ([]int, error) {
	var out []int
	for _, word := range args {
		v, err := strconv.Atoi(word)
		if err != nil || v < 0 {
			return nil, fmt.Errorf("%q is no number; %w", word, errUsage)
		}
		out = append(out, v)
	}
	if len(out) < least {
		return nil, errUsage
	}
	return out, nil
}

func xid(c *card, args []string) error {
	v, err := numbers(args, 1)
	if err != nil {
		return err
	}
	gi, ci := uint32(0xFFFFFFFF), uint32(0xFFFFFFFF)
	if len(v) > 1 {
		gi = uint32(v[1])
	}
	if len(v) > 2 {
		ci = uint32(v[2])
	}
	c.node.happen(c, gonvml.EventTypeXidCriticalError, uint64(v[0]), gi, ci)
	return nil
}

func comeBack(c *card, _ []string) error {
	c.lost, c.gone = false, false
	c.node.tick++
	c.lostAt = c.node.tick
	return nil
}

func setRecovery(c *card, args []string) error {
	words := []string{"none", "gpuReset", "nodeReboot", "drainP2P", "drainAndReset"}
	if len(args) != 1 {
		return errUsage
	}
	c.recovery = slices.Index(words, args[0])
	if c.recovery < 0 && args[0] != "unknown" {
		c.recovery = 0
		return errUsage
	}
	c.node.happen(c, gonvml.EventTypeGpuRecoveryAction, 0, 0xFFFFFFFF, 0xFFFFFFFF)
	return nil
}

func setECC(c *card, args []string) error {
	if c.eccOff = len(args) == 1 && args[0] == "off"; c.eccOff {
		return nil
	}
	v, err := numbers(args, 3)
	if err != nil {
		return err
	}
	c.ecc = [3]uint64{uint64(v[0]), uint64(v[1]), uint64(v[2])}
	return nil
}

func setRemap(c *card, args []string) error {
	if len(args) < 2 {
		return errUsage
	}
	v, err := numbers(args[:2], 2)
	if err != nil {
		return err
	}
	c.remap = [4]int{v[0], v[1], 0, 0}
	for _, word := range args[2:] {
		switch word {
		case "pending":
			c.remap[2] = 1
		case "failed":
			c.remap[3] = 1
		default:
			return errUsage
		}
	}
	return nil
}

func setSlow(c *card, args []string) error {
	v, err := numbers(args, 1)
	if err == nil {
		c.clocks = uint64(v[0])
	}
	return err
}

func setFabric(c *card, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "none":
		c.fabric = gonvml.GpuFabricInfo{}
	case len(args) == 1 && args[0] == "inProgress":
		c.fabric = gonvml.GpuFabricInfo{State: gonvml.GPU_FABRIC_STATE_IN_PROGRESS}
	case len(args) == 3 && args[0] == "completed":
		cluster, err := uuid.Parse(args[1])
		if err != nil {
			return fmt.Errorf("cluster: %w", err)
		}
		v, err := numbers(args[2:], 1)
		if err != nil {
			return err
		}
		c.fabric = gonvml.GpuFabricInfo{State: gonvml.GPU_FABRIC_STATE_COMPLETED, ClusterUuid: cluster, CliqueId: uint32(v[0])}
	default:
		return errUsage
	}
	return nil
}

func setLinks(c *card, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	v, err := numbers(args[:1], 1)
	if err != nil {
		return err
	}
	c.links, c.switched = v[0], slices.Contains(args, "switched")
	return nil
}
