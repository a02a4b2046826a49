// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/kube/leases"
	"weir.dev/weir/internal/kube/workqueue"
	"weir.dev/weir/lab/apiserver"
	"weir.dev/weir/lab/armemu"
)

// Options configure a Stage. Settle is required.
type Options struct {
	// Settle returns when everything else in the bubble waits for time to pass:
	// synctest.Wait.
	Settle func()
	// Seed makes names, addresses and latencies repeatable.
	Seed uint64
	// Replicas is how many processes of Weir there are; with more than one, one leads.
	Replicas int
	// Configure changes azure.json; nil leaves it as it is usual.
	Configure func(*config.Config)
	// Role is what Azure lets Weir do; nil is everything.
	Role *armemu.Role
	// MostStandardIPs is how many Standard public IPs Azure lets the subscription have; 0 is its own number.
	MostStandardIPs int
	// HideDeleted has Azure answer 404 to a GET of what is being deleted, while it still uses what it used.
	HideDeleted bool
	// Behaviour is what Azure does where that is not known; what it leaves open is as assumed.
	Behaviour behaviour.Behaviour
	// Machines has nodes have machines though pools hold addresses, and Watched that no rule which has had
	// members has none.
	Machines, Watched bool
	// Indoors has machines be in no pool of somebody else, as those behind Basic load balancers are.
	Indoors bool
	// Limits are Azure's; nil is none.
	Limits *armemu.Limits
	// Latency is how long Azure's operations take; empty is armemu.Quiet.
	Latency armemu.Latency
	// LatencyScale stretches it; zero is as recorded.
	LatencyScale float64
}

// Names and places of the cluster in Azure.
const (
	subscription  = "00000000-0000-0000-0000-000000000001"
	group         = "rg"
	clusterName   = "kubernetes"
	region        = "eastus"
	weirNamespace = "weir-system"
	inGroup       = "/subscriptions/" + subscription + "/resourceGroups/" + group
	network       = inGroup + "/providers/Microsoft.Network/"
	vnetID        = network + "virtualNetworks/net"
	securityGroup = network + "networkSecurityGroups/nodes"
)

// Stage is a cluster, its Azure and the processes of Weir, in virtual time. Its methods are for
// one goroutine, the one that made it.
type Stage struct {
	opts  Options
	start time.Time
	cfg   config.Config
	emu   *armemu.Emulator
	api   *apiserver.Server
	log   *journal
	// people is by which people write.
	people client.Client
	// replicas run Weir.
	replicas []*replica
	// foreign are what others have put into pools, and how many processes there had been when somebody
	// deleted the record of that, or onRecord; peoples the public IPs that people made, by folded id.
	foreign map[foreignMember]int
	peoples map[string]string
	// gone are the addresses of nodes that left, and how many processes there had been by then.
	gone map[string]int
	// announced are the nodes whose eviction was, by UID: false once a person has cleared the taint.
	announced map[string]bool
	// edge is whether somebody's load balancer is there, and revoked whether a namespace has lost its grant.
	edge, revoked bool
	// calm is whether all was level: nothing of Weir's is being written any more.
	calm bool
	// owners are all Services that there ever were.
	owners map[string]string // by the first part of their names, the key
	// counted is how many requests each side had at the last look.
	counted   traffic
	apiFaults []func() // their ends

	// watching guards fed: the rules that have members, each with its pool, if that is watched.
	watching sync.Mutex
	fed      map[string]string

	// fatal is the request at which a process is to die.
	fatal fatal

	mu     sync.Mutex // guards all below; never held while time passes
	broken []string   // what never may happen, and did
}

// New returns a stage with an empty cluster, on which nothing runs yet.
func New(opts Options) (*Stage, error) {
	if opts.LatencyScale == 0 {
		opts.LatencyScale = 1
	}
	s := &Stage{
		opts: opts, start: time.Now(), log: newJournal(), foreign: map[foreignMember]int{}, peoples: map[string]string{}, owners: map[string]string{},
		gone: map[string]int{}, announced: map[string]bool{},
		emu: armemu.New(armemu.Options{
			Seed: opts.Seed, Role: opts.Role, Behaviour: opts.Behaviour.Or(behaviour.Assumed()), Throttle: opts.Limits,
			MostStandardIPs: opts.MostStandardIPs, HideDeleted: opts.HideDeleted, Latency: opts.Latency, LatencyScale: opts.LatencyScale, LatencyFixed: true,
		}),
		api: apiserver.New(apiserver.Options{Seed: opts.Seed, OwnFromApply: true}),
	}
	s.cfg = azureJSON()
	if opts.Configure != nil {
		opts.Configure(&s.cfg)
	}
	if err := s.cfg.Normalize(); err != nil {
		return nil, fmt.Errorf("azure.json of the stage: %w", err)
	}
	if err := s.furnish(); err != nil {
		return nil, err
	}
	for i := range max(opts.Replicas, 1) {
		s.replicas = append(s.replicas, &replica{stage: s, name: fmt.Sprintf("weir-%d", i)})
	}
	return s, nil
}

func azureJSON() config.Config {
	return config.Config{
		Cloud: config.Cloud{SubscriptionID: subscription, ResourceGroup: group, Location: region},
		Network: config.Network{
			VnetName: "net", SubnetName: "nodes", SecurityGroupName: "nodes",
		},
	}
}

// flags are those of the controller, as it is deployed.
func (s *Stage) flags(log *slog.Logger) app.Options {
	return app.Options{
		ClusterName: clusterName, LoadBalancerClass: app.LoadBalancerClass, MetricsAddress: "0", HealthAddress: "0",
		LeaderElect: s.opts.Replicas > 1, LeaderElectNamespace: weirNamespace, Election: leases.DefaultElection(), Requeue: workqueue.DefaultBackoff(),
		Log: log,
	}
}

// Start starts all processes of Weir.
func (s *Stage) Start() {
	for _, r := range s.replicas {
		r.start()
	}
	s.opts.Settle()
}

// Configure has all processes of Weir end in good order, and others start with another azure.json.
func (s *Stage) Configure(change func(*config.Config)) error {
	for _, r := range s.replicas {
		r.stop()
	}
	change(&s.cfg)
	if err := s.cfg.Normalize(); err != nil {
		return fmt.Errorf("azure.json of the stage: %w", err)
	}
	s.log.note("azure.json says %s", s.cfg.Holds())
	s.Start()
	return nil
}

// Pass lets time pass.
func (s *Stage) Pass(d time.Duration) {
	time.Sleep(d)
	s.opts.Settle()
}

// Close ends all that runs. The stage is of no use afterwards. The error says what happened that
// never may.
func (s *Stage) Close() error {
	s.EndFaults()
	for _, r := range s.replicas {
		r.stop()
	}
	s.api.Close()
	s.opts.Settle()
	return s.Broken()
}

// breaks notes what never may happen.
func (s *Stage) breaks(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.broken) < 10 {
		s.broken = append(s.broken, s.clock(time.Now())+" "+fmt.Sprintf(format, args...))
	}
}

// Broken returns what happened that never may: nil is a good answer at any time.
func (s *Stage) Broken() error {
	var all []error
	for _, early := range s.emu.Hasty() {
		all = append(all, fmt.Errorf("called before a Retry-After: %s", early))
	}
	for _, v := range s.emu.Violations() {
		all = append(all, fmt.Errorf("a body breaks the schema: %s", v.Describe()))
	}
	for _, secret := range s.log.leaks() {
		all = append(all, fmt.Errorf("a token was written down: %s", secret))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.broken {
		all = append(all, errors.New(b))
	}
	return errors.Join(all...)
}

// clock spells a time as it is on the stage.
func (s *Stage) clock(t time.Time) string { return fmt.Sprintf("%+.3fs", t.Sub(s.start).Seconds()) }
