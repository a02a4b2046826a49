// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lead"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/pace"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolupdate"
)

// process is one life of Weir: its lanes, its client, and all that it remembers. It
// implements the interfaces by which the lanes know the outside.
type process struct {
	stage  *Stage
	name   string
	ctx    context.Context
	cancel context.CancelFunc
	ended  chan struct{}
	lanes  *poolupdate.Lanes
	client *azure.Client
	writes *pace.Budgets
	// dead is set when the process is killed, guarded by the stage's mu: what it
	// does from then on has no effect.
	dead bool
	// knew are the pools of writes of several whose last answer the process had when it died: it
	// may come to settle them on the way to its end, as a real one does not.
	knew map[lb.PoolKey]bool
	// stopping is set when the process has to end in good order, as when it is not the
	// leader any more.
	stopping bool
	// former is set when another leads: what it does from then on is no attempt that the
	// stage follows, and must not be a write.
	former bool
	// fence is asked before each write; nil without an election. epoch is what it leads in.
	fence *lead.Fence
	epoch lead.Epoch
	// seen is what the process has seen of the cluster, and lags how it lags behind.
	seen view
	lags map[object]*lag
	// acted are the nodes as the process has acted on them.
	acted map[string]membership.Node
	// ledger is what it knows of the ledger: a write of the ledger may fail. notBefore is
	// what it has found in the statuses.
	ledger    map[poolschedule.Ref]entry
	notBefore map[poolschedule.Ref]time.Time
	// versions are those of the entries that it has read or written last, and learnt is what
	// another has recorded since, and no attempt has seen.
	versions map[poolschedule.Ref]int
	learnt   map[poolschedule.Ref]entry
	lease    *entrance // nil if there is none
	// kill is where the process dies; nil if nowhere.
	kill *killPoint
	// writing counts the writes under way by load balancer.
	writing map[lb.LoadBalancerKey]int
	// following counts the ends of writes that are awaited.
	following map[lb.LoadBalancerKey]int
	// begun are the pools whose writes Azure has accepted and that no read has followed yet.
	begun map[lb.LoadBalancerKey][]*pool
	// waiting counts the requests that Azure has, by load balancer: it takes no time to
	// answer one unless it is slow.
	waiting map[lb.LoadBalancerKey]int
	// freed is when another part of the process gave a lane back.
	freed map[lb.LoadBalancerKey]time.Time
	// asleep is closed when the machine goes on; nil while it works. woke is when it did.
	asleep chan struct{}
	woke   time.Time
	// spent are the writes of each subscription in the last minutes.
	spent map[string][]time.Time
	// recheck is when the removal of what a BackendPool leaves behind is looked at again.
	recheck map[poolschedule.Ref]time.Time
}

// canary is a token that must be seen on the wire alone.
const canary = "canary-d2VpcmNhbmFyeQ"

type canaryCredential struct{}

// GetToken implements azcore.TokenCredential.
func (canaryCredential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: canary, ExpiresOn: time.Now().Add(1000 * time.Hour)}, nil
}

// pause is every back-off of the SDK, and the longest Retry-After that it waits for.
const pause = time.Second

// connect gives the process a client that knows nothing yet.
func (p *process) connect() error {
	endpoint, _, err := azure.Emulator("http://127.0.0.1:8080")
	if err != nil {
		return err
	}
	p.client, err = azure.New(azure.Options{
		Endpoint: endpoint, Credential: canaryCredential{}, Transport: &wire{process: p, azure: p.stage.emu.Transport()},
		VirtualNetworkID: networkID, Writes: p.writes, Fence: p.fence, Retry: azure.Retry{Pause: pause},
	})
	return err
}

// launch starts a process with an empty memory. The cluster is listed at once.
func (s *Stage) launch() error {
	s.mu.Lock()
	p := &process{
		stage: s, ended: make(chan struct{}), writing: map[lb.LoadBalancerKey]int{}, following: map[lb.LoadBalancerKey]int{}, begun: map[lb.LoadBalancerKey][]*pool{}, waiting: map[lb.LoadBalancerKey]int{},
		freed: map[lb.LoadBalancerKey]time.Time{}, recheck: map[poolschedule.Ref]time.Time{}, notBefore: map[poolschedule.Ref]time.Time{},
		spent: map[string][]time.Time{}, seen: s.cluster.clone(), acted: maps.Clone(s.cluster.nodes), lags: map[object]*lag{}, ledger: map[poolschedule.Ref]entry{},
		versions: map[poolschedule.Ref]int{}, learnt: map[poolschedule.Ref]entry{},
	}
	for _, b := range s.cluster.bindings {
		p.ledger[b.ref], p.notBefore[b.ref], p.versions[b.ref] = b.entry, b.notBefore, b.version
		s.reclaim(b, b.entry)
	}
	s.lives++
	p.name = fmt.Sprintf("weir-%d", s.lives)
	s.mu.Unlock()
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if s.opts.Replicas > 1 {
		p.fence = lead.NewFence(renewDeadline, func() time.Duration { return time.Since(s.start) })
	}
	p.writes = pace.New(float64(s.opts.SharePercent)/100, s.opts.Interval)
	if err := p.connect(); err != nil {
		return err
	}
	config := poolupdate.Config{
		Interval: s.opts.Interval, Writes: p.writes, MaxRetries: s.opts.MaxRetries, DriftPeriod: s.opts.DriftPeriod, AdminState: s.opts.AdminState,
		Azure: p, Cluster: p, Ledger: p, Reporter: p, Log: s.log,
	}
	s.writesWhole(p, &config)
	if s.opts.LeaseTerm > 0 {
		p.lease = newEntrance(p, s.opts.LeaseTerm)
		config.Lease = p.lease
	}
	p.lanes = poolupdate.New(config)
	s.mu.Lock()
	s.process = p
	s.mu.Unlock()
	s.elect(p)
	go func() { p.lanes.Run(p.ctx); close(p.ended) }()
	return nil
}

// die ends the process from within: nothing that it does from now on counts, and the
// answers that are on their way to it are lost. The caller holds s.mu.
func (p *process) die(how string) {
	if p.dead {
		return
	}
	s := p.stage
	p.dead, p.knew = true, s.answeredTogether()
	if !p.former {
		s.forgetAll()
	}
	if how != "" {
		s.trace("weir", "killed %s", how)
	}
	p.cancel()
}

// forgetAll drops what the process knows that is not there any more, or does not lead. The
// caller holds s.mu.
func (s *Stage) forgetAll() {
	s.gates, s.joints = map[string]*gate{}, map[lb.LoadBalancerKey]*joint{}
	for _, k := range s.pools {
		k.forget()
		if b := s.cluster.bindings[k.id.Name]; b != nil {
			k.remembers(b) // the status outlives the process
		}
	}
}

// stop kills the process, if one runs, and waits for its end.
func (s *Stage) stop(how string) {
	s.mu.Lock()
	p := s.process
	s.process = nil
	if p != nil {
		p.die(how)
	}
	s.mu.Unlock()
	if p != nil {
		<-p.ended
	}
}

// stepDown has the process end in good order, and waits for it.
func (s *Stage) stepDown() {
	s.mu.Lock()
	p := s.process
	p.resign("")
	s.mu.Unlock()
	<-p.ended
	s.stop("")
}

// resign has the process begin to end in good order. The caller holds s.mu.
func (p *process) resign(how string) {
	p.stopping = true
	who := ""
	if p.former {
		who = p.name + " "
	}
	p.stage.trace("weir", "%s", strings.TrimRight(who+"is not the leader any more "+how, " "))
	p.cancel()
}

// alive returns the process that runs, or nil.
func (s *Stage) alive() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil || s.process.dead {
		return nil
	}
	return s.process
}

// Get implements poolupdate.Azure.
func (p *process) Get(ctx context.Context, id lb.PoolID) (lb.Pool, error) {
	p.phase(id, "get")
	return p.client.Get(ctx, id)
}

// Machines implements poolupdate.Azure.
func (p *process) Machines(ctx context.Context, pool lb.Pool) (lb.Pool, error) {
	return p.client.Machines(ctx, pool)
}

// Put implements poolupdate.Azure.
func (p *process) Put(ctx context.Context, pool lb.Pool) (lb.Pool, error) {
	s, id := p.stage, pool.ID.LoadBalancer
	p.phase(pool.ID, "put")
	s.mu.Lock()
	p.starts(id, "by pool "+pool.ID.Name, false)
	s.mu.Unlock()
	defer p.wrote(id)
	return p.client.Put(ctx, pool)
}

func (p *process) wrote(id lb.LoadBalancerID) {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	p.writing[id.Key()]--
}

// phase notes how far an attempt is.
func (p *process) phase(id lb.PoolID, phase string) {
	s := p.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.former {
		return
	}
	k := s.pools[id.Key()]
	s.jointOf(id.LoadBalancer).asked = nil
	if k == nil || p.dead {
		return
	}
	if phase == "get" && k.readsAgain() {
		k.attempt.phase, k.attempt.sent = phase, 0
		return
	}
	if k.attempt == nil || phase == "get" {
		s.begins(k)
	}
	k.attempt.phase, k.attempt.sent = phase, 0
}

// betweenReads is how far apart the reads of one attempt may be.
const betweenReads = 11 * time.Second

// readsAgain reports whether a read belongs to the attempt that is under way: its first write met
// 412, or a load balancer that is Failed, and until the second it may be read more than once. The
// caller holds the stage's mu.
func (k *pool) readsAgain() bool {
	a := k.attempt
	if a == nil || a.over {
		return false
	}
	again := a.phase == "put" && !a.overtaken && k.last.kind == http.MethodPut && (k.last.status == http.StatusPreconditionFailed || k.last.parent) ||
		a.phase == "get" && a.overtaken && time.Since(k.last.at) <= betweenReads
	a.overtaken = a.overtaken || again
	return again
}

// Enter implements poolupdate.Azure. Lanes that wake in the same instant are let in
// by their distance, so that it is always the same one that comes first.
func (p *process) Enter(id lb.LoadBalancerID) (until time.Time, why string) {
	p.awake(lb.PoolID{LoadBalancer: id})
	time.Sleep(p.stage.distance(id) / 1000)
	return p.client.Enter(id)
}
