package kubelet

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Config is what sluice reads of a configuration file of NVIDIA's device plugin:
// how devices are offered and shared. All else in it is the plugin's.
type Config struct {
	Path     string
	MIG      MIGStrategy // "" if the file does not say
	Shares   []Share     // by resource
	Warnings []string    // what the plugin ignores or refuses
}

// ConfigSource is where the device plugin's configuration lies.
type ConfigSource struct {
	// Path is a file, or a folder with a file for each name that the node's label
	// nvidia.com/device-plugin.config may have. "" is nowhere.
	Path string
	// Default is the name in the folder that serves nodes without that label; without
	// it the file called "default", or the only one.
	Default string
}

// maxConfig bounds what is read: a ConfigMap holds no more.
const maxConfig = 1 << 20 // bytes

// Read is the configuration of a node with these labels. nil without an error means
// that none is set. An error names the file, and the line where that is known.
func (s ConfigSource) Read(labels map[string]string) (*Config, error) {
	if s.Path == "" {
		return nil, nil
	}
	info, err := os.Stat(s.Path)
	if err != nil {
		return nil, fmt.Errorf("read the device plugin's configuration: %w", err)
	}
	path := s.Path
	if info.IsDir() {
		if path, err = s.choose(labels[ConfigLabel]); err != nil || path == "" {
			return nil, err
		}
	}
	text, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the device plugin's configuration: %w", err)
	}
	return ParseConfig(path, text)
}

// choose is the file in the folder for a node with the given label.
func (s ConfigSource) choose(label string) (string, error) {
	entries, err := os.ReadDir(s.Path)
	if err != nil {
		return "", fmt.Errorf("read the device plugin's configurations: %w", err)
	}
	var names []string
	for _, e := range entries {
		// A mounted ConfigMap has hidden folders beside its files.
		if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	name := cmp.Or(label, s.Default)
	switch {
	case name != "" && slices.Contains(names, name):
	case label != "":
		return "", fmt.Errorf("label %s=%s names no configuration in %s, which has %s", ConfigLabel, label, s.Path, orNone(names))
	case name != "":
		return "", fmt.Errorf("the default configuration %s is not in %s, which has %s", name, s.Path, orNone(names))
	case slices.Contains(names, "default"):
		name = "default"
	case len(names) == 1:
		name = names[0]
	case len(names) == 0:
		return "", nil
	default:
		return "", fmt.Errorf("%s has %s: no label %s and no default chooses one", s.Path, orNone(names), ConfigLabel)
	}
	return filepath.Join(s.Path, name), nil
}

func orNone(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(text) > maxConfig {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("longer than %d bytes", maxConfig)}
	}
	return text, err
}

// The parts of the plugin's file that are read here. Unknown keys are the plugin's.
type (
	configFile struct {
		Version string `yaml:"version"`
		Flags   struct {
			MIGStrategy *string `yaml:"migStrategy"`
		} `yaml:"flags"`
		Sharing struct {
			TimeSlicing *replicated `yaml:"timeSlicing"`
			MPS         *replicated `yaml:"mps"`
			// Written here by mistake, where the plugin does not look.
			RenameByDefault *bool `yaml:"renameByDefault"`
			FailAboveOne    *bool `yaml:"failRequestsGreaterThanOne"`
		} `yaml:"sharing"`
	}
	replicated struct {
		RenameByDefault bool        `yaml:"renameByDefault"`
		FailAboveOne    *bool       `yaml:"failRequestsGreaterThanOne"`
		Resources       []yaml.Node `yaml:"resources"`
	}
	replicatedResource struct {
		Name     string    `yaml:"name"`
		Replicas *int      `yaml:"replicas"`
		Rename   string    `yaml:"rename"`
		Devices  yaml.Node `yaml:"devices"`
	}
)

// ParseConfig reads the text of a configuration file of the device plugin. What the
// plugin would refuse or ignore is a warning with its line; only a text that is no
// such file is an error.
func ParseConfig(path string, text []byte) (*Config, error) {
	file := configFile{}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if file.Version != "" && file.Version != "v1" {
		return nil, fmt.Errorf("%s: version %q of the device plugin's configuration, only v1 is known", path, file.Version)
	}
	c := &Config{Path: path}
	if m := file.Flags.MIGStrategy; m != nil {
		switch v := MIGStrategy(*m); v {
		case MIGNone, MIGSingle, MIGMixed:
			c.MIG = v
		default:
			c.warn("flags.migStrategy is %q, the device plugin knows none, single and mixed", *m)
		}
	}
	s := file.Sharing
	if s.RenameByDefault != nil || s.FailAboveOne != nil {
		c.warn("renameByDefault and failRequestsGreaterThanOne directly under sharing are ignored: they belong under timeSlicing or mps")
	}
	switch {
	case s.TimeSlicing != nil && s.MPS != nil && len(s.TimeSlicing.Resources) > 0 && len(s.MPS.Resources) > 0:
		c.warn("timeSlicing and mps exclude each other: the device plugin starts with neither")
	default:
		errs := errors.Join(c.add(TimeSlicing, s.TimeSlicing), c.add(MPS, s.MPS))
		if errs != nil {
			return nil, errs
		}
	}
	slices.SortStableFunc(c.Shares, func(a, b Share) int { return strings.Compare(a.Resource, b.Resource) })
	return c, nil
}

// add reads the resources that are shared by one strategy.
func (c *Config) add(strategy Strategy, r *replicated) error {
	if r == nil {
		return nil
	}
	fail := strategy == MPS // the plugin's default differs
	if r.FailAboveOne != nil {
		fail = *r.FailAboveOne
	}
	for i := range r.Resources {
		at := fmt.Sprintf("line %d", r.Resources[i].Line)
		var one replicatedResource
		if err := r.Resources[i].Decode(&one); err != nil {
			return fmt.Errorf("%s: %s: %w", c.Path, at, err)
		}
		if one.Name == "" {
			c.warn("%s: a shared resource without a name", at)
			continue
		}
		name := one.Name
		if !strings.HasPrefix(name, vendor) {
			name = vendor + name
		}
		switch {
		case one.Replicas == nil:
			c.warn("%s: %s has no replicas", at, name)
			continue
		case *one.Replicas < 2:
			c.warn("%s: %s with %d replicas is refused: at least 2", at, name, *one.Replicas)
			continue
		case slices.ContainsFunc(c.Shares, func(s Share) bool { return s.Resource == name }):
			c.warn("%s: %s is shared twice, the first counts", at, name)
			continue
		case strategy == MPS && strings.HasPrefix(name, vendor+"mig-"):
			c.warn("%s: %s: MPS shares whole cards only", at, name)
			continue
		}
		if one.Rename != "" && one.Rename != name+".shared" {
			c.warn("%s: rename: %s is ignored: a resource keeps its name or gets .shared", at, one.Rename)
		}
		if !one.Devices.IsZero() && one.Devices.Value != "all" {
			c.warn("%s: devices is ignored: all cards of a node are shared alike", at)
		}
		c.Shares = append(c.Shares, Share{Resource: name, Strategy: strategy, Replicas: *one.Replicas, Renamed: r.RenameByDefault, FailAboveOne: &fail})
	}
	return nil
}

func (c *Config) warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, c.Path+": "+fmt.Sprintf(format, args...))
}
