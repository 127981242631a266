package mock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// errUsage is that of a command with too few or odd words.
var errUsage = errors.New("see the commands of package mock")

// commands are by their first word; each is given the others, with the node locked.
// What it returns is for people.
var commands = map[string]func(n *Node, args []string) (string, error){
	"reboot":   func(n *Node, _ []string) (string, error) { n.reboot(); return "", nil },
	"driver":   setDriver,
	"old":      setOld,
	"silence":  setSilence,
	"strategy": setStrategy,
	"share":    setShare,
	"show":     func(n *Node, _ []string) (string, error) { return n.show(), nil },
}

// onCards are the commands about cards, given the words after the card.
var onCards = map[string]func(c *card, args []string) error{
	"mig":      setMode,
	"cut":      cut,
	"clear":    func(c *card, _ []string) error { c.clear(); return nil },
	"drop":     drop,
	"xid":      xid,
	"lose":     func(c *card, _ []string) error { c.lost = true; return nil },
	"gone":     func(c *card, _ []string) error { c.gone = true; return nil },
	"return":   comeBack,
	"reset":    func(c *card, _ []string) error { c.reset(); return nil },
	"recovery": setRecovery,
	"ecc":      setECC,
	"remap":    setRemap,
	"slow":     setSlow,
	"fabric":   setFabric,
	"links":    setLinks,
	"strange":  func(c *card, _ []string) error { c.malformed = true; return nil },
}

// Do carries out one command. What it answers is for people.
func (n *Node) Do(command string) (string, error) {
	words, _, _ := strings.Cut(command, "#")
	args := strings.Fields(words)
	if len(args) == 0 {
		return "", nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	defer n.stir()
	answer, err := n.do(args)
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return answer, nil
}

func (n *Node) do(args []string) (string, error) {
	if run, ok := commands[args[0]]; ok {
		return run(n, args[1:])
	}
	if args[0] == "fail" || args[0] == "mend" {
		return "", n.setFaults(args)
	}
	run, ok := onCards[args[0]]
	if !ok {
		return "", fmt.Errorf("no such command; %w", errUsage)
	}
	if len(args) < 2 {
		return "", fmt.Errorf("which card? %w", errUsage)
	}
	cards, err := n.which(args[1])
	for _, c := range cards {
		if err := run(c, args[2:]); err != nil {
			return "", fmt.Errorf("card %d: %w", c.at, err)
		}
	}
	return "", err
}

func (n *Node) which(word string) ([]*card, error) {
	if word == "all" {
		return n.cards, nil
	}
	i, err := strconv.Atoi(word)
	if err != nil || i < 0 || i >= len(n.cards) {
		return nil, fmt.Errorf("there is no card %q among %d", word, len(n.cards))
	}
	return n.cards[i : i+1], nil
}

// Must is Do for tests and examples, where a refused command is a mistake.
func (n *Node) Must(commands ...string) {
	for _, c := range commands {
		if _, err := n.Do(c); err != nil {
			panic("mock: " + err.Error())
		}
	}
}

// Script carries out commands, a line each, up to the first that is refused.
func (n *Node) Script(r io.Reader) error {
	lines := bufio.NewScanner(r)
	for at := 1; lines.Scan(); at++ {
		if _, err := n.Do(lines.Text()); err != nil {
			return fmt.Errorf("line %d: %w", at, err)
		}
	}
	return lines.Err()
}

// Serve takes commands from whoever connects, until the context ends; it closes the
// listener and returns when the last connection is over.
func (n *Node) Serve(ctx context.Context, l net.Listener) error {
	var wait sync.WaitGroup
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	defer wait.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("take commands: %w", err)
		}
		wait.Go(func() {
			end := context.AfterFunc(ctx, func() { conn.Close() })
			defer end()
			defer conn.Close()
			n.talk(conn)
		})
	}
}

func (n *Node) talk(conn io.ReadWriter) {
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		answer, err := n.Do(lines.Text())
		verdict := "ok"
		if err != nil {
			verdict = "error: " + err.Error()
		}
		if _, err := fmt.Fprintf(conn, "%s%s\n", answer, verdict); err != nil {
			return
		}
	}
}

func (n *Node) setFaults(args []string) error {
	if len(args) < 2 {
		return errUsage
	}
	faults := []map[string]gonvml.Return{n.faults}
	if args[1] != "library" {
		cards, err := n.which(args[1])
		if err != nil {
			return err
		}
		faults = nil
		for _, c := range cards {
			faults = append(faults, c.faults)
		}
	}
	for _, f := range faults {
		switch {
		case args[0] == "mend":
			clear(f)
		case len(args) != 4:
			return errUsage
		default:
			ret, err := code(args[3])
			if err != nil {
				return err
			}
			f[args[2]] = ret
		}
	}
	return nil
}

// answers are those that a command may name.
var answers = map[string]gonvml.Return{
	"NOT_SUPPORTED": gonvml.ERROR_NOT_SUPPORTED, "NO_PERMISSION": gonvml.ERROR_NO_PERMISSION, "NOT_FOUND": gonvml.ERROR_NOT_FOUND,
	"TIMEOUT": gonvml.ERROR_TIMEOUT, "IRQ_ISSUE": gonvml.ERROR_IRQ_ISSUE, "INSUFFICIENT_POWER": gonvml.ERROR_INSUFFICIENT_POWER,
	"GPU_IS_LOST": gonvml.ERROR_GPU_IS_LOST, "RESET_REQUIRED": gonvml.ERROR_RESET_REQUIRED, "IN_USE": gonvml.ERROR_IN_USE,
	"NOT_READY": gonvml.ERROR_NOT_READY, "UNKNOWN": gonvml.ERROR_UNKNOWN, "FUNCTION_NOT_FOUND": gonvml.ERROR_FUNCTION_NOT_FOUND,
	"INVALID_STATE": gonvml.ERROR_INVALID_STATE, "UNINITIALIZED": gonvml.ERROR_UNINITIALIZED,
}

func code(name string) (gonvml.Return, error) {
	if ret, ok := answers[name]; ok {
		return ret, nil
	}
	return 0, fmt.Errorf("no answer %q", name)
}

func setDriver(n *Node, args []string) (string, error) {
	states := map[string]gonvml.Return{
		"ok": gonvml.SUCCESS, "missing": gonvml.ERROR_LIBRARY_NOT_FOUND, "unloaded": gonvml.ERROR_DRIVER_NOT_LOADED,
		"forbidden": gonvml.ERROR_NO_PERMISSION, "mismatch": gonvml.ERROR_LIB_RM_VERSION_MISMATCH, "unknown": gonvml.ERROR_UNKNOWN,
	}
	if len(args) != 1 {
		return "", errUsage
	}
	ret, ok := states[args[0]]
	if !ok {
		return "", errUsage
	}
	n.driver = ret
	return "", nil
}

func setOld(n *Node, args []string) (string, error) {
	for _, symbol := range args {
		n.lacks[symbol] = true
	}
	return "", nil
}

func setSilence(n *Node, args []string) (string, error) {
	if len(args) != 1 || !slices.Contains([]string{"on", "off"}, args[0]) {
		return "", errUsage
	}
	n.silent = args[0] == "on"
	n.awake.Broadcast()
	return "", nil
}
