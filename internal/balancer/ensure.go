// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/publicip"
	"weir.dev/weir/internal/service"
)

// Azure reads and writes load balancers and public IPs. Its errors carry a *fault.Fault.
// It is called from several goroutines at once.
type Azure interface {
	// Enter asks for leave to work on a load balancer; see poolupdate.Azure.
	Enter(id lb.LoadBalancerID) (until time.Time, why string)
	GetLoadBalancer(ctx context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error)
	ListLoadBalancers(ctx context.Context, subscription, resourceGroup string) ([]lb.LoadBalancer, error)
	// PutLoadBalancer writes what was read, or makes what has no etag, waits until Azure
	// is done and returns what it then shows.
	PutLoadBalancer(ctx context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error)
	DeleteLoadBalancer(ctx context.Context, b lb.LoadBalancer) error
	ListPublicIPs(ctx context.Context, subscription, resourceGroup string) ([]lb.PublicIP, error)
	PutPublicIP(ctx context.Context, ip lb.PublicIP) (lb.PublicIP, error)
	DeletePublicIP(ctx context.Context, ip lb.PublicIP) error
	GetSecurityGroup(ctx context.Context, id lb.ResourceID) (lb.SecurityGroup, error)
	PutSecurityGroup(ctx context.Context, g lb.SecurityGroup) (lb.SecurityGroup, error)
}

// Lanes are the lanes of the pools; poolupdate.Lanes are these.
type Lanes interface {
	// Lock takes the lane of a load balancer: no pool of it is written until unlock.
	Lock(ctx context.Context, id lb.LoadBalancerID) (unlock func(), err error)
	// Carry gives the pools that have a change waiting their newest addresses, while the
	// lane is locked. settled has to be called once: with what Azure shows after the write,
	// or with nil if it failed; mayLand says that it may land all the same.
	Carry(ctx context.Context, id lb.LoadBalancerID, pools []lb.Pool) (next []lb.Pool, settled func(shown []lb.Pool, mayLand bool))
}

// Cluster answers from the newest snapshot of the cluster, without waiting.
type Cluster interface {
	// Owners returns the owners of all Services that have a load balancer of Weir's, or
	// are to have one.
	Owners() []string
	// Fresh returns what a pool is to hold that is about to be made for a Service; none for one
	// that a BackendPool keeps, whose lane fills it.
	Fresh(service string, on lb.LoadBalancerID, pool service.Pool) []lb.Address
	// Awaits reports whether a pool of a Service is to hold members that are not Down, and
	// nothing keeps Weir from filling it.
	Awaits(service string, on lb.LoadBalancerID, pool service.Pool) bool
	// Foreign returns those addresses of a pool of Services that Weir did not put there.
	Foreign(ctx context.Context, pool lb.Pool) ([]netip.Addr, error)
	// Reached returns all Services of type LoadBalancer, whoever serves them, and those of
	// which Azure may hold something.
	Reached() []Reached
	// Nodes returns the addresses of all nodes, and NodesOf those of the nodes behind a load
	// balancer; false if they are not known yet.
	Nodes() []netip.Addr
	NodesOf(on lb.LoadBalancerID) ([]netip.Addr, bool)
}

// Config is what the Balancers work with. All fields but Behaviour and Lease are needed.
type Config struct {
	Settings
	Azure   Azure
	Lanes   Lanes
	Cluster Cluster
	// Behaviour is what is known of Azure; what it does not know is not counted on.
	Behaviour behaviour.Behaviour
	// Lease keeps other controllers away during a write; nil is none.
	Lease contest.Lease
	// Done is told what came of a request, from several goroutines at once.
	Done func(Result)
	// Overtaken is told that a write met 412 and was tried a second time, and whether that went
	// well, from several goroutines at once; nil is nobody.
	Overtaken func(resource string, settled bool)
	Log       *slog.Logger
}

// Settings are the cluster's.
type Settings struct {
	service.Settings
	// Place is where load balancers are; its Name is not used.
	Place lb.LoadBalancerID
	// Location is the region of what is made.
	Location string
	// Configurations are the cluster's load balancers, at least one; each has an internal
	// twin.
	Configurations []service.Configuration
	// MostRules is how many rules a load balancer may have.
	MostRules int
	// SecurityGroup is the network security group of the nodes; without a name none is
	// written.
	SecurityGroup lb.ResourceID
	// RequireEffectiveRestrictions refuses Services that say who may connect where the group
	// is not there, or guards nothing.
	RequireEffectiveRestrictions bool
}

// Request asks for the load balancers to hold what one Service wants.
type Request struct {
	// Service is its namespace and name, with a slash.
	Service string
	// Owner is the first part of the names of all that is the Service's.
	Owner string
	// OwnPools are the names of the pools that it may have for itself.
	OwnPools []string
	// HeldPools are those of them, on any of the load balancers, that are on record as its own.
	HeldPools []lb.PoolID
	// MadePools are those of HeldPools that it has a BackendPool of Weir's for.
	MadePools []lb.PoolID
	// Desired is what it wants on On; nil if it wants nothing any more.
	Desired *service.Spec
	On      lb.LoadBalancerID
	// Leave are the other load balancers that may hold parts of it.
	Leave []lb.LoadBalancerID
	// Recorded are the names of all load balancers that may hold parts of it, those included
	// that are not the cluster's any more.
	Recorded []string
	// Spare has a request that wants something take no address away: it ends with a RemovalError
	// before it would.
	Spare bool
	// Shown are the addresses that its status shows.
	Shown []netip.Addr
	// Again is what a person wrote who wants a contest to be taken up again: another one counts.
	Again string
	// Groups are the names of further resource groups that may have public IPs which were
	// made for it.
	Groups []string
}

// Result is what came of a request.
type Result struct {
	Request
	// Err is nil if Azure holds what the Service wants, and nothing else of it. Else it
	// carries a *fault.Fault, if Azure had a part in it.
	Err error
	// Addresses are those of the frontends that it wants, in their order.
	Addresses []netip.Addr
	// Note is what people should know although all went well; empty for nothing.
	Note string
	// Kept are pools that it needs no more, or that were the last of a load balancer, and that
	// stay for the addresses of others in them; also if there is an error.
	Kept []plan.Kept
	// Contests are those about what the Service has: there Azure does not hold what it
	// wants, and Weir has left it so, or has tried again since.
	Contests []contest.Contest
	// Changed is true if something was written for the Service.
	Changed bool
	// Gone are the load balancers that were deleted meanwhile, because nothing was left on
	// them.
	Gone []lb.LoadBalancerID
	// Filling are the pools that have to be filled before the rest can be done for it: what it
	// has stays with those that it had, and it has to be asked again.
	Filling []lb.PoolID
	// Without are those of its own pools that Azure was seen not to have.
	Without []lb.PoolID
}

// Balancers bring load balancers level with requests. Its methods may be called from any
// goroutine, at any time.
type Balancers struct {
	cfg      Config
	atlas    atlas
	ips      *publicip.Keeper
	contests contest.Contests
	busy     contest.InProgress

	mu      sync.Mutex                     // guards what follows
	workers map[lb.LoadBalancerKey]*worker // that of the security group has no key
	// start runs a worker in the background; nil before Run and after it.
	start func(*worker)
	// suspects are the Services that were to blame for a refused write.
	suspects map[string]*refusal
}

// New returns Balancers that take requests at once and work on them during Run.
func New(cfg Config) *Balancers {
	b := &Balancers{cfg: cfg, workers: map[lb.LoadBalancerKey]*worker{}, suspects: map[string]*refusal{}}
	b.atlas.reading = make(chan struct{}, 1)
	b.ips = publicip.New(publicip.Config{
		Azure: cfg.Azure, Lease: cfg.Lease, Contests: &b.contests, InProgress: &b.busy, Log: cfg.Log,
		ClusterName: cfg.ClusterName, Group: cfg.PublicIPs, Location: cfg.Location, LoadBalancers: cfg.ids(),
	})
	if cfg.SecurityGroup.Name != "" {
		b.workers[""] = newGuard(b).worker
	}
	return b
}

// Run works until the context is done, and returns when nothing is under way any more.
// What still waits then is dropped without a word.
func (b *Balancers) Run(ctx context.Context) {
	var running sync.WaitGroup
	b.mu.Lock()
	b.start = func(w *worker) { running.Go(func() { w.run(ctx) }) }
	for _, w := range b.workers {
		b.start(w)
	}
	b.mu.Unlock()

	<-ctx.Done()
	b.mu.Lock()
	b.start = nil
	b.mu.Unlock()
	running.Wait()
}

// Ensure queues a request. It waits for nothing; Done hears what came of it. A Service
// has one request at a time.
func (b *Balancers) Ensure(req Request) {
	j := &job{Request: req, steps: steps(req, b.cfg.SecurityGroup.Name != "")}
	j.ips = &publicip.Request{Service: req.Service, Owner: req.Owner, Desired: req.Desired, Asked: j.asked(), Groups: req.Groups}
	b.next(j)
}

// step is what a job does on one load balancer.
type step struct {
	on lb.LoadBalancerID
	// leaves is true if the Service goes from there.
	leaves bool
	// secures is true for the step on the security group.
	secures bool
}

// job is a request on its way.
type job struct {
	Request
	steps     []step
	addresses []netip.Addr
	changed   bool
	note      string
	kept      []plan.Kept
	contests  []contest.Contest
	gone      []lb.LoadBalancerID
	without   []lb.PoolID
	// rules are those that it wants on the load balancer of the step for now, and filling the
	// pools that it waits for; see hold.
	rules   []lb.Rule
	filling []lb.PoolID
	// ips is what it wants of public IPs.
	ips *publicip.Request
}

func (j *job) asked() contest.Asked {
	return contest.Asked{Desired: j.Desired, On: j.On.Key(), Again: j.Again}
}

// contested notes the contests that there are about what a job has.
func (j *job) contested(all ...*contest.Contest) {
	for _, c := range all {
		if c != nil {
			j.contests = append(j.contests, *c)
		}
	}
}

// moves reports whether there are more steps on load balancers.
func (j *job) moves() bool { return len(j.steps) > 1 && !j.steps[1].secures }

// steps orders what a request takes. An address that was on one load balancer can be on
// another only when it has left, so public ones leave first; for others it is better
// that the new frontend is there before the old one goes.
//
// The security group opens when the addresses are known, and closes before they are given
// up: what Azure gets back it may give to somebody else, and nothing may be let in there.
// Flows that are open outlive the rule that let them in.
func steps(req Request, guarded bool) []step {
	all := stepsOnBalancers(req)
	switch {
	case !guarded:
		return all
	case req.Desired == nil:
		return append([]step{{secures: true}}, all...)
	}
	return append(all, step{secures: true})
}

func stepsOnBalancers(req Request) []step {
	var all []step
	for _, id := range req.Leave {
		all = append(all, step{on: id, leaves: true})
	}
	if req.Desired == nil {
		return all
	}
	here := step{on: req.On}
	if req.Desired.Internal {
		return append([]step{here}, all...)
	}
	return append(all, here)
}

// next hands a job to the load balancer of its next step, or ends it.
func (b *Balancers) next(j *job) {
	if len(j.steps) == 0 {
		b.done(j, nil)
		return
	}
	id, key := j.steps[0].on, j.steps[0].on.Key()
	if j.steps[0].secures {
		key = ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.workers[key]
	if w == nil {
		w = &worker{Balancers: b, id: id, wake: make(chan struct{}, 1)}
		w.work = w.pass
		b.workers[key] = w
		if b.start != nil {
			b.start(w)
		}
	}
	w.add(j)
}

// done tells what came of a job.
func (b *Balancers) done(j *job, err error) {
	if j.Desired == nil && err == nil {
		b.atlas.remove(j.Service)
		b.contests.Forget(j.Service, contest.LoadBalancer, contest.PublicIPs, contest.SecurityGroup)
	}
	gone := slices.DeleteFunc(j.gone, func(id lb.LoadBalancerID) bool {
		return j.Desired != nil && id.Key() == j.On.Key() // it was made again
	})
	b.cfg.Done(Result{Request: j.Request, Err: err, Addresses: j.addresses, Note: j.note, Kept: j.kept, Contests: j.contests, Changed: j.changed || j.ips.Changed, Gone: gone, Filling: j.filling, Without: j.without})
}

// What a pass writes. These are labels of a metric.
const (
	resourceBalancer      = "load balancer"
	resourcePublicIP      = "public IP"
	resourceSecurityGroup = "security group"
)

// overtaken counts writes of a resource that were tried twice.
func (b *Balancers) overtaken(resource string) func(settled bool) {
	return func(settled bool) {
		if b.cfg.Overtaken != nil {
			b.cfg.Overtaken(resource, settled)
		}
	}
}

// Contest is what a Result tells of one.
type Contest = contest.Contest

// CodeUpdating is the code of what somebody is just writing.
const CodeUpdating = contest.CodeUpdating
