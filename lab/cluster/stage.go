// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/apiserver"
	"weir.dev/weir/lab/armemu"
)

// Options configure a Stage. Settle is required.
type Options struct {
	// Settle returns when all other goroutines in the bubble are blocked: synctest.Wait.
	Settle func()
	// Seed makes names, addresses and latencies repeatable.
	Seed uint64
	// Replicas is the number of Weir processes. With more than one, they elect a leader.
	Replicas int
	// ReadinessGates has the processes open the gates of pods.
	ReadinessGates bool
	// GatewayAPI has the processes serve Gateways once a test has installed the types.
	GatewayAPI bool
	// Configure edits azure.json; nil keeps the defaults.
	Configure func(*config.Config)
	// Role is Weir's Azure role; nil allows everything.
	Role *armemu.Role
	// MaxStandardIPs is the subscription's quota of Standard public IPs; 0 is Azure's default.
	MaxStandardIPs int
	// Zones are the availability zones of the region; nil is none.
	Zones []string
	// HideDeleted makes Azure answer GET with 404 for a resource that is being deleted, while it
	// still occupies its references.
	HideDeleted bool
	// Behaviour selects undocumented Azure behavior; unset answers use the assumed one.
	Behaviour behavior.Behavior
	// Machines gives nodes machines even if pools hold addresses. The second option checks that no
	// rule loses all its members.
	Machines, CheckRuleMembers bool
	// NoOutboundPool keeps machines out of the unmanaged outbound pool, as behind Basic load balancers.
	NoOutboundPool bool
	// Limits are Azure's limits; nil is none.
	Limits *armemu.Limits
	// Latency is the duration of Azure operations; empty is armemu.Quiet.
	Latency armemu.Latency
	// LatencyScale scales Latency; zero is 1.
	LatencyScale float64
}

// Names and location of the cluster in Azure.
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

// Stage is a cluster, its Azure and Weir's processes in virtual time. Only the goroutine that
// created it may call its methods.
type Stage struct {
	opts  Options
	start time.Time
	cfg   config.Config
	// localPools are the pools of Local Services: their own, unless a test changes it.
	localPools config.LocalServicePools
	emulator   *armemu.Emulator
	api        *apiserver.Server
	logs       *logBuffer
	// userClient is the client for user writes.
	userClient client.Client
	replicas   []*replica
	// foreign maps foreign pool members to a constant of foreign.go, or to the number of processes
	// started when the record was deleted. The second map has the public IPs created by users, by
	// folded id.
	foreign map[foreignMember]int
	userIPs map[string]string
	// deletedAddresses maps addresses of deleted nodes to the number of processes started by then.
	deletedAddresses map[string]int
	// evictionNotices are nodes with an announced eviction, by UID; false after a user cleared the taint.
	evictionNotices map[string]bool
	// Whether the unmanaged load balancer exists, and whether a namespace lost its grant.
	hasUnmanaged, grantRevoked bool
	// isIdle: everything was in sync, and Weir writes nothing.
	isIdle bool
	// serviceOwners maps the first part of resource names to the key of the Service, for all Services ever
	// created.
	serviceOwners map[string]string // by the first part of their names, the key
	// lastTraffic is the traffic at the last check.
	lastTraffic  traffic
	endAPIFaults []func() // functions that end them

	// azure caches what readAzure returns.
	azure azureCache

	// ruleMembersMu guards the pool of each rule that has members, if these are checked.
	ruleMembersMu sync.Mutex
	ruleMembers   map[string]string

	// killPoint is the request that kills its process.
	killPoint requestKill

	mu         sync.Mutex // guards the fields below; never held while time passes
	violations []string   // violations
}

// New returns a stage with an empty cluster and no running process.
func New(opts Options) (*Stage, error) {
	if opts.LatencyScale == 0 {
		opts.LatencyScale = 1
	}
	s := &Stage{
		opts: opts, start: time.Now(), logs: newLogBuffer(), foreign: map[foreignMember]int{}, userIPs: map[string]string{}, serviceOwners: map[string]string{},
		deletedAddresses: map[string]int{}, evictionNotices: map[string]bool{},
		emulator: armemu.New(armemu.Options{
			Seed: opts.Seed, Role: opts.Role, Behavior: opts.Behaviour.WithDefaults(behavior.AssumedBehavior()), Throttle: opts.Limits,
			MaxStandardIPs: opts.MaxStandardIPs, Zones: opts.Zones, HideDeleted: opts.HideDeleted, Latency: opts.Latency, LatencyScale: opts.LatencyScale, LatencyFixed: true,
		}),
		api: apiserver.New(apiserver.Options{Seed: opts.Seed, OwnershipFromApply: true}),
	}
	s.cfg, s.localPools = azureJSON(), config.PoolsOwn
	if opts.Configure != nil {
		opts.Configure(&s.cfg)
	}
	if err := s.normalizeConfig(); err != nil {
		return nil, fmt.Errorf("azure.json of the stage: %w", err)
	}
	if err := s.createObjects(); err != nil {
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

// normalizeConfig applies localPools where pools can hold addresses, and allows Azure's limit of rules on one load
// balancer.
func (s *Stage) normalizeConfig() error {
	s.cfg.LocalServicePools = s.localPools
	if strings.EqualFold(string(s.cfg.BackendPoolType), string(config.NodeIPConfiguration)) {
		s.cfg.LocalServicePools = ""
	}
	if s.cfg.MaximumRules == nil && len(s.cfg.Configurations) == 0 {
		s.cfg.MaximumRules = new(1500)
	}
	return s.cfg.Normalize()
}

// controllerFlags returns the controller flags of the shipped deployment.
func (s *Stage) controllerFlags(log *slog.Logger) app.Options {
	return app.Options{
		ClusterName: clusterName, LoadBalancerClass: app.LoadBalancerClass, MetricsAddress: "0", HealthAddress: "0",
		LeaderElect: s.opts.Replicas > 1, LeaderElectNamespace: weirNamespace, Election: k8s.DefaultElection(), Requeue: k8s.DefaultQueueBackoff(),
		ReadinessGates: s.opts.ReadinessGates, GatewayAPI: s.opts.GatewayAPI, Log: log,
	}
}

// Start starts all Weir processes.
func (s *Stage) Start() {
	for _, r := range s.replicas {
		r.startLoop()
	}
	s.opts.Settle()
}

// Configure restarts all processes with another azure.json.
func (s *Stage) Configure(change func(*config.Config)) error {
	for _, r := range s.replicas {
		r.stopProcess()
	}
	change(&s.cfg)
	if err := s.normalizeConfig(); err != nil {
		return fmt.Errorf("azure.json of the stage: %w", err)
	}
	s.logs.addAction("azure.json says %s", s.cfg.MemberType())
	s.Start()
	return nil
}

// Sleep waits in virtual time.
func (s *Stage) Sleep(d time.Duration) {
	time.Sleep(d)
	s.opts.Settle()
}

// Close stops all processes. The stage is unusable afterwards. It returns the violations.
func (s *Stage) Close() error {
	s.EndFaults()
	for _, r := range s.replicas {
		r.stopProcess()
	}
	s.api.Close()
	s.opts.Settle()
	return s.Violations()
}

func (s *Stage) addViolation(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.violations) < 10 {
		s.violations = append(s.violations, s.formatTime(time.Now())+" "+fmt.Sprintf(format, args...))
	}
}

// Violations returns the violations so far, or nil.
func (s *Stage) Violations() error {
	var errs []error
	for _, early := range s.emulator.EarlyCalls() {
		errs = append(errs, fmt.Errorf("called before a Retry-After: %s", early))
	}
	for _, v := range s.emulator.Violations() {
		errs = append(errs, fmt.Errorf("a body breaks the schema: %s", v.Describe()))
	}
	for _, secret := range s.logs.tokenLines() {
		errs = append(errs, fmt.Errorf("a token was written down: %s", secret))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.violations {
		errs = append(errs, errors.New(b))
	}
	return errors.Join(errs...)
}

// formatTime formats a time relative to the start of the stage.
func (s *Stage) formatTime(t time.Time) string {
	return fmt.Sprintf("%+.3fs", t.Sub(s.start).Seconds())
}
