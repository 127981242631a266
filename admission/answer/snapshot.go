package answer

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
)

// The version and kind of a snapshot. Within one version fields are added, never
// renamed or given another meaning.
const (
	Version      = "sluice.dev/v1"
	SnapshotKind = "Snapshot"
)

// Snapshot is a state of the controller written down: what it was told of the
// cluster and what it remembers, so that every question can be asked of it anywhere.
// It holds what the core knows and nothing else: no environment, no secret, no
// command line and no annotation of anybody's pods is ever in it.
//
// Amounts are whole numbers by resource: millicores, bytes, pieces. Lengths of time
// are written as 1h30m. A resource of a quota is called FLAVOR:RESOURCE where the
// queue counts by flavor.
type Snapshot struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Time       time.Time `json:"time"` // as of which it holds
	Policy     Policy    `json:"policy"`
	// Resources are all names of resources, in the order in which the controller met
	// them: ties between resources are broken by it.
	Resources []string        `json:"resources"`
	Models    []Model         `json:"models,omitempty"`
	Nodes     []Node          `json:"nodes"`
	Queues    []Queue         `json:"queues"`
	Workloads []Workload      `json:"workloads"`
	Pods      []Pod           `json:"pods,omitempty"` // of no workload that is known
	Nominees  []Nominee       `json:"nominees,omitempty"`
	Past      *admission.Past `json:"past,omitempty"`
	Gone      int             `json:"gone,omitempty"`
}

// Take writes the state down as of now.
func Take(s *admission.State, now time.Time) *Snapshot { return Write(s.Image(), now) }

// Write is Take of a state's image.
func Write(im admission.Image, now time.Time) *Snapshot {
	w := writer{names: im.Resources, models: map[string]bool{}}
	s := &Snapshot{
		APIVersion: Version, Kind: SnapshotKind, Time: now, Policy: writePolicy(im.Config), Resources: im.Resources,
		Nodes: []Node{}, Queues: []Queue{}, Workloads: []Workload{}, Past: im.Past, Gone: im.Gone,
	}
	refused := map[string]admission.Mark{}
	for _, m := range im.Refusals {
		refused[m.Node] = m
	}
	for _, n := range im.Nodes {
		out := w.node(n)
		if m, ok := refused[n.Name]; ok {
			out.Refused = &RefusedPods{Times: m.Refused, Until: optional(m.Until)}
		}
		s.Nodes = append(s.Nodes, out)
	}
	for _, q := range im.Queues {
		s.Queues = append(s.Queues, w.queue(q))
	}
	for i := range im.Workloads {
		s.Workloads = append(s.Workloads, w.workload(&im.Workloads[i]))
	}
	for _, p := range im.Pods {
		s.Pods = append(s.Pods, w.pod(&p))
	}
	for _, n := range im.Nominees {
		s.Nominees = append(s.Nominees, Nominee{Key: n.Key, UID: n.UID, Victims: n.Victims, Flavor: n.Flavor, Plan: writePlan(n.Plan), Awaited: n.Awaited})
	}
	s.Models = w.list
	return s
}

// Image reads the snapshot back. An error names the object and the field.
func (s *Snapshot) Image() (admission.Image, error) {
	im := admission.Image{Resources: s.Resources, Past: s.Past, Gone: s.Gone}
	if s.APIVersion != Version || s.Kind != SnapshotKind {
		return im, fmt.Errorf("a snapshot says apiVersion %s and kind %s, this says %q and %q", Version, SnapshotKind, s.APIVersion, s.Kind)
	}
	r := newReader(s.Resources, s.Models)
	im.Config = r.policy(s.Policy)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		im.Nodes = append(im.Nodes, r.node(n))
		if n.Refused != nil {
			im.Refusals = append(im.Refusals, admission.Mark{Node: n.Name, Refused: n.Refused.Times, Until: deref(n.Refused.Until)})
		}
	}
	for i := range s.Queues {
		im.Queues = append(im.Queues, r.queue(&s.Queues[i]))
	}
	for i := range s.Workloads {
		im.Workloads = append(im.Workloads, r.workload(&s.Workloads[i]))
	}
	for i := range s.Pods {
		im.Pods = append(im.Pods, r.pod(&s.Pods[i]))
	}
	for _, n := range s.Nominees {
		im.Nominees = append(im.Nominees, admission.Nominee{Key: n.Key, UID: n.UID, Victims: n.Victims, Flavor: n.Flavor, Plan: r.plan(n.Plan), Awaited: n.Awaited})
	}
	if len(r.errs) > 0 {
		return im, fmt.Errorf("read a snapshot: %w", r.errs[0])
	}
	return im, nil
}

// Encode writes the snapshot as indented JSON.
func (s *Snapshot) Encode(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(s)
}

// Decode reads a snapshot. A field that this version does not know is an error: the
// answers could be wrong without it.
func Decode(from io.Reader) (*Snapshot, error) {
	d := json.NewDecoder(from)
	d.DisallowUnknownFields()
	s := &Snapshot{}
	if err := d.Decode(s); err != nil {
		return nil, fmt.Errorf("read a snapshot: %w", err)
	}
	return s, nil
}

// Policy is the controller's configuration as far as it decides.
type Policy struct {
	ReserveAfter   Duration `json:"reserveAfter"`
	Reservations   int      `json:"reservations"`
	ShortestFirst  bool     `json:"shortestFirst,omitempty"`
	MostActs       int      `json:"mostActs,omitempty"` // admissions in a cycle
	RecoveryWindow Duration `json:"recoveryWindow"`
	MinRuntime     Duration `json:"minRuntime"`
	GrowEvery      Duration `json:"growEvery"`
	FairReclaim    bool     `json:"fairReclaim"`
	HalfLife       Duration `json:"halfLife"`
	RetryBase      Duration `json:"retryBase"`
	RetryMost      Duration `json:"retryMost"`
}

// Model is how cards of one name can be cut.
type Model struct {
	Name     string    `json:"name"`
	Units    int       `json:"units,omitempty"` // 0: they cannot
	Profiles []Profile `json:"profiles,omitempty"`
}

// Profile is one way to cut a slice out of a card, and the resource it is offered as.
type Profile struct {
	Name     string `json:"name"`
	Resource string `json:"resource"`
	Size     int    `json:"size"` // units
	Starts   []int  `json:"starts"`
	Sole     string `json:"sole,omitempty"`
}

// Node is what one node offers.
type Node struct {
	Name     string            `json:"name"`
	Labels   map[string]string `json:"labels,omitempty"`
	Taints   []Taint           `json:"taints,omitempty"`
	Offer    Amounts           `json:"offer"`
	Whole    Amounts           `json:"whole,omitempty"` // with all its hardware in order; absent: as offer
	Doubtful bool              `json:"doubtful,omitempty"`
	Outages  []Outage          `json:"outages,omitempty"`
	Drift    []Difference      `json:"drift,omitempty"`
	Cards    *Cards            `json:"cards,omitempty"`
	Refused  *RefusedPods      `json:"refused,omitempty"`
}

// Difference is something that is claimed of a node and that its cards contradict.
type Difference struct {
	About   string `json:"about"`
	What    string `json:"what"`
	Claimed string `json:"claimed,omitempty"`
	Found   string `json:"found,omitempty"`
}

// RefusedPods says that its kubelet refused pods with devices so many times in a
// row: it is closed until then, or on trial.
type RefusedPods struct {
	Times int        `json:"times"`
	Until *time.Time `json:"until,omitempty"`
}

// Taint keeps pods away.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Outage is why a node, or part of it, is out of use.
type Outage struct {
	What   string `json:"what"`
	Detail string `json:"detail,omitempty"`
	Closed bool   `json:"closed,omitempty"`
}

// Cards are the GPUs of a node as its agent reports them.
type Cards struct {
	Whole   string   `json:"whole"` // the resource of whole cards
	Silent  bool     `json:"silent,omitempty"`
	Governs []string `json:"governs"` // resources that only cards offer
	Cards   []Card   `json:"cards"`
}

// Card is one GPU.
type Card struct {
	Model    string  `json:"model,omitempty"`
	Offer    Amounts `json:"offer,omitempty"`
	Cut      bool    `json:"cut,omitempty"`
	Replicas int     `json:"replicas,omitempty"`
	Layout   string  `json:"layout,omitempty"`
	Out      string  `json:"out,omitempty"`
}

// Queue is a team's queue.
type Queue struct {
	Name         string   `json:"name"`
	Parent       string   `json:"parent,omitempty"`
	Weight       int64    `json:"weight"` // thousandths
	Nominal      Amounts  `json:"nominal"`
	Max          Amounts  `json:"max"`
	Lendable     Amounts  `json:"lendable"`
	Priority     int64    `json:"priority,omitempty"`
	Strict       bool     `json:"strict,omitempty"`
	Within       string   `json:"withinQueue,omitempty"`
	Reclaim      string   `json:"reclaim,omitempty"`
	Sheltered    bool     `json:"sheltered,omitempty"`
	Closed       bool     `json:"closed,omitempty"`
	Turns        bool     `json:"turns,omitempty"`
	UserMax      Amounts  `json:"userMax"`
	BorrowFirst  bool     `json:"borrowFirst,omitempty"`
	PreemptFirst bool     `json:"preemptFirst,omitempty"`
	Flavors      []Flavor `json:"flavors,omitempty"`
}

// Flavor is a pool of nodes and how it is charged.
type Flavor struct {
	Name        string            `json:"name"`
	Requires    []Requirement     `json:"requires,omitempty"`
	Tolerations []Toleration      `json:"tolerations,omitempty"`
	ChargedAs   map[string]string `json:"chargedAs,omitempty"` // resource of pods ▶ of the quota
	// Parts says, of devices that count as parts of cards, how many thousandths of a
	// card one is; they are charged in Card.
	Parts Amounts `json:"parts,omitempty"`
	Card  string  `json:"card,omitempty"`
	Roomy bool    `json:"roomy,omitempty"` // the emptiest node that fits is filled first
}

// Requirement is one condition on a node's labels.
type Requirement struct {
	Key    string   `json:"key"`
	Op     string   `json:"op"`
	Values []string `json:"values,omitempty"`
}

// Toleration lets a pod onto tainted nodes.
type Toleration struct {
	Key    string `json:"key,omitempty"`
	Exists bool   `json:"exists,omitempty"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect,omitempty"`
}

// Workload is one gang with its pods and what the controller remembers of it.
type Workload struct {
	Name       string     `json:"name"` // under which it is known: key, unless it is gone
	Key        string     `json:"key"`  // namespace/name
	UID        string     `json:"uid"`
	Queue      string     `json:"queue"`
	User       string     `json:"user,omitempty"`
	Priority   int64      `json:"priority,omitempty"`
	Queued     time.Time  `json:"queued"`
	PodSets    []PodSet   `json:"podSets"`
	MinTotal   int        `json:"minTotal,omitempty"`
	Level      *Level     `json:"level,omitempty"`
	Roomy      bool       `json:"roomy,omitempty"` // the emptiest node that fits is filled first
	Stays      []SetPlan  `json:"stays,omitempty"` // where pods of it are already, for those to come
	Pinned     bool       `json:"pinned,omitempty"`
	Limit      Duration   `json:"limit,omitempty"`
	MaxRun     Duration   `json:"maxRun,omitempty"`
	Held       bool       `json:"held,omitempty"`
	Invalid    string     `json:"invalid,omitempty"`
	After      *time.Time `json:"after,omitempty"`
	Gate       string     `json:"gate,omitempty"`
	MinRuntime Duration   `json:"minRuntime,omitempty"`

	Version    uint64         `json:"version"`
	Phase      string         `json:"phase"` // Waiting, Admitted, Stopping or Finished
	Admission  *Admission     `json:"admission,omitempty"`
	Done       map[string]int `json:"done,omitempty"`
	Pods       []Pod          `json:"pods,omitempty"`
	ChargedTo  string         `json:"chargedTo,omitempty"`
	Flavor     string         `json:"flavor,omitempty"`
	Unanswered bool           `json:"unanswered,omitempty"`
	Before     *Before        `json:"before,omitempty"`
	Gone       bool           `json:"gone,omitempty"`
	StopsFor   *Claimant      `json:"stopsFor,omitempty"`
	Over       bool           `json:"over,omitempty"` // taken back for good
	Whole      bool           `json:"whole,omitempty"`
	Broken     *time.Time     `json:"broken,omitempty"`
	Leaving    *time.Time     `json:"leaving,omitempty"`
	Grown      *time.Time     `json:"grown,omitempty"`
	Refused    int            `json:"refused,omitempty"`
	Retry      *time.Time     `json:"retry,omitempty"`
	Retrying   bool           `json:"retrying,omitempty"`
}

// Claimant is the workload for which another was taken back.
type Claimant struct {
	Key string `json:"key"`
	UID string `json:"uid"`
}

// Before is what a workload was before a write that has no answer yet.
type Before struct {
	Phase     string     `json:"phase"`
	Admission *Admission `json:"admission,omitempty"`
}

// PodSet is a number of alike pods.
type PodSet struct {
	Name        string          `json:"name"`
	Count       int             `json:"count"`
	Min         int             `json:"min"`
	Request     Amounts         `json:"request"`
	All         []Requirement   `json:"all,omitempty"`
	Any         [][]Requirement `json:"any"` // null asks nothing
	Tolerations []Toleration    `json:"tolerations,omitempty"`
	Sharing     string          `json:"sharing,omitempty"`
	Level       *Level          `json:"level,omitempty"`
	CountedAs   []string        `json:"countedAs,omitempty"` // the groups that its pods are in
	Apart       []Apart         `json:"apart,omitempty"`
	Spread      []Spread        `json:"spread,omitempty"`
	Near        []Near          `json:"near,omitempty"`
	Wishes      []Wish          `json:"wishes,omitempty"`
}

// Level asks that pods share a value of a label.
type Level struct {
	Key      string `json:"key"`
	Required bool   `json:"required,omitempty"`
}

// Admission is a gang's place.
type Admission struct {
	Key    string    `json:"key"`
	UID    string    `json:"uid"`
	Queue  string    `json:"queue"`
	Flavor string    `json:"flavor,omitempty"`
	Plan   []SetPlan `json:"plan"`
	At     time.Time `json:"at"`
	Based  uint64    `json:"based,omitempty"`
}

// SetPlan is where the pods of one pod set go.
type SetPlan struct {
	Name  string `json:"name"`
	Slots []Slot `json:"slots,omitempty"`
}

// Slot is room for so many pods on a node.
type Slot struct {
	Node  string `json:"node"`
	Count int    `json:"count"`
}

// Pod is one pod that is gated or takes room.
type Pod struct {
	UID      string     `json:"uid"`
	Key      string     `json:"key"`
	Version  uint64     `json:"version"`
	Workload string     `json:"workload,omitempty"`
	Set      string     `json:"set,omitempty"`
	Node     string     `json:"node,omitempty"`
	Phase    string     `json:"phase"` // Gated, Placed, Succeeded or Failed
	Stopping bool       `json:"stopping,omitempty"`
	Refused  bool       `json:"refusedByKubelet,omitempty"`
	Accepted bool       `json:"accepted,omitempty"`
	Stamp    int64      `json:"stamp,omitempty"`
	Request  Amounts    `json:"request,omitempty"`
	Queue    string     `json:"queue,omitempty"`
	Refusals int        `json:"refusals,omitempty"`
	Retry    *time.Time `json:"retry,omitempty"`
}

// Nominee is a claim for which others stop.
type Nominee struct {
	Key     string    `json:"key"`
	UID     string    `json:"uid"`
	Victims []string  `json:"victims"`
	Flavor  string    `json:"flavor,omitempty"`
	Plan    []SetPlan `json:"plan,omitempty"`
	Awaited bool      `json:"awaited,omitempty"`
}

// Amounts are whole numbers by resource. null is not the same as {} where a queue
// may leave a bound out.
type Amounts map[string]int64

// Duration is a length of time, written as 1h30m.
type Duration time.Duration

// MarshalJSON writes the duration as text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads it back.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	v, err := time.ParseDuration(text)
	*d = Duration(v)
	return err
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func deref(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

var (
	phases    = []string{admission.Waiting: "Waiting", admission.Admitted: "Admitted", admission.Stopping: "Stopping", admission.Finished: "Finished"}
	podPhases = []string{admission.PodGated: "Gated", admission.PodPlaced: "Placed", admission.PodSucceeded: "Succeeded", admission.PodFailed: "Failed"}
)

func writePlan(p gang.Plan) []SetPlan {
	out := []SetPlan{}
	for _, s := range p.Sets {
		set := SetPlan{Name: s.Name}
		for _, slot := range s.Slots {
			set.Slots = append(set.Slots, Slot(slot))
		}
		out = append(out, set)
	}
	return out
}

func writePolicy(c admission.Config) Policy {
	return Policy{
		ReserveAfter: Duration(c.ReserveAfter), Reservations: c.Reservations, ShortestFirst: c.ShortestFirst, MostActs: c.MostActs, RecoveryWindow: Duration(c.RecoveryWindow),
		MinRuntime: Duration(c.MinRuntime), GrowEvery: Duration(c.GrowEvery), FairReclaim: c.FairReclaim,
		HalfLife: Duration(c.HalfLife), RetryBase: Duration(c.RetryBase), RetryMost: Duration(c.RetryMost),
	}
}

// Seconds is a Duration of so many seconds.
func Seconds(n int64) Duration { return Duration(time.Duration(n) * time.Second) }
