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

// process is one run of Weir: its workers, client and in-memory state. It implements the interfaces
// that the updater depends on.
type process struct {
	stage  *Stage
	name   string
	ctx    context.Context
	cancel context.CancelFunc
	ended  chan struct{}
	lanes  *poolupdate.Workers
	client *azure.Client
	writes *pace.Budgets
	// dead is set when the process is killed; later actions have no effect. Guarded by the stage's
	// mu.
	dead bool
	// knew are the pools of batched updates whose last response the process had when it died.
	// Unlike a real process, it may still resolve them.
	knew map[lb.PoolKey]bool
	// stopping: a graceful shutdown is requested, for example after losing leadership.
	stopping bool
	// former: another process leads. Attempts are no longer tracked, and writes are violations.
	former bool
	// fence is checked before each write; nil without an election. epoch is its leadership epoch.
	fence *lead.Fence
	epoch lead.Epoch
	// seen is the process's cache of the cluster; lags are its delays.
	seen view
	lags map[object]*lag
	// acted are the nodes that the process has handled.
	acted map[string]membership.Node
	// ledger is the process's copy, since writes may fail. notBefore is the Retry-After read from
	// the statuses.
	ledger    map[poolschedule.Ref]entry
	notBefore map[poolschedule.Ref]time.Time
	// versions are the entry versions last read or written. learnt are concurrent changes of
	// another process that no attempt has seen.
	versions map[poolschedule.Ref]int
	learnt   map[poolschedule.Ref]entry
	lease    *entrance // nil if disabled
	// kill is where the process dies, or nil.
	kill *killPoint
	// writing counts the writes in flight by load balancer.
	writing map[lb.LoadBalancerKey]int
	// following counts the awaited operations.
	following map[lb.LoadBalancerKey]int
	// begun are the pools with accepted writes and no later read.
	begun map[lb.LoadBalancerKey][]*pool
	// waiting counts requests in Azure by load balancer; a response takes no time unless Azure is
	// slow.
	waiting map[lb.LoadBalancerKey]int
	// freed is when another component released a worker's lock.
	freed map[lb.LoadBalancerKey]time.Time
	// asleep is closed when the machine resumes; nil while it runs. woke is the time of resumption.
	asleep chan struct{}
	woke   time.Time
	// spent are the recent writes of each subscription.
	spent map[string][]time.Time
	// recheck is when the removal of leftover members is retried.
	recheck map[poolschedule.Ref]time.Time
}

// canary is a token that must appear on the wire only.
const canary = "canary-d2VpcmNhbmFyeQ"

type canaryCredential struct{}

func (canaryCredential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: canary, ExpiresOn: time.Now().Add(1000 * time.Hour)}, nil
}

// pause is every SDK backoff, and the longest Retry-After it waits for.
const pause = time.Second

// connect creates a new client for the process.
func (p *process) connect() error {
	endpoint, _, err := azure.LocalEndpoint("http://127.0.0.1:8080")
	if err != nil {
		return err
	}
	p.client, err = azure.New(azure.Options{
		Endpoint: endpoint, Credential: canaryCredential{}, Transport: &wire{process: p, azure: p.stage.emu.Transport()},
		VirtualNetworkID: networkID, Writes: p.writes, Fence: p.fence, Retry: azure.Retry{Delay: pause},
	})
	return err
}

// launch starts a process with empty memory and lists the cluster.
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
		Interval: s.opts.Interval, Writes: p.writes, MaxRetries: s.opts.MaxRetries, ResyncPeriod: s.opts.DriftPeriod, AdminState: s.opts.AdminState,
		Azure: p, Cluster: p, StatusStore: p, Reporter: p, Log: s.log,
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

// die ends the process: later actions have no effect, and pending responses are lost. The caller
// holds s.mu.
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

// forgetAll drops the state of a dead or former leader. The caller holds s.mu.
func (s *Stage) forgetAll() {
	s.gates, s.joints = map[string]*gate{}, map[lb.LoadBalancerKey]*joint{}
	for _, k := range s.pools {
		k.forget()
		if b := s.cluster.bindings[k.id.Name]; b != nil {
			k.remembers(b) // the status outlives the process
		}
	}
}

// stop kills the running process, if any, and waits for its end.
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

// stepDown shuts the process down gracefully and waits for it.
func (s *Stage) stepDown() {
	s.mu.Lock()
	p := s.process
	p.resign("")
	s.mu.Unlock()
	<-p.ended
	s.stop("")
}

// resign starts a graceful shutdown. The caller holds s.mu.
func (p *process) resign(how string) {
	p.stopping = true
	who := ""
	if p.former {
		who = p.name + " "
	}
	p.stage.trace("weir", "%s", strings.TrimRight(who+"is not the leader any more "+how, " "))
	p.cancel()
}

// alive returns the running process, or nil.
func (s *Stage) alive() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil || s.process.dead {
		return nil
	}
	return s.process
}

func (p *process) GetPool(ctx context.Context, id lb.PoolID) (lb.Pool, error) {
	p.phase(id, "get")
	return p.client.GetPool(ctx, id)
}

func (p *process) ResolveMachines(ctx context.Context, pool lb.Pool) (lb.Pool, error) {
	return p.client.ResolveMachines(ctx, pool)
}

func (p *process) PutPool(ctx context.Context, pool lb.Pool) (lb.Pool, error) {
	s, id := p.stage, pool.ID.LoadBalancer
	p.phase(pool.ID, "put")
	s.mu.Lock()
	p.starts(id, "by pool "+pool.ID.Name, false)
	s.mu.Unlock()
	defer p.wrote(id)
	return p.client.PutPool(ctx, pool)
}

func (p *process) wrote(id lb.LoadBalancerID) {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	p.writing[id.Key()]--
}

// phase records the phase of an attempt.
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

// betweenReads is the maximum time between the reads of one attempt.
const betweenReads = 11 * time.Second

// readsAgain reports whether a read belongs to the current attempt: its first write met 412 or a
// Failed load balancer, and it may read more than once before the second. The caller holds the
// stage's mu.
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

// Enter implements poolupdate.Azure. Workers that wake at the same instant enter in the order of
// their distance, for determinism.
func (p *process) Enter(id lb.LoadBalancerID) (until time.Time, why string) {
	p.awake(lb.PoolID{LoadBalancer: id})
	time.Sleep(p.stage.distance(id) / 1000)
	return p.client.Enter(id)
}
