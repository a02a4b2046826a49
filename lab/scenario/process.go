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
	"weir.dev/weir/internal/leader"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
	"weir.dev/weir/internal/ratelimit"
)

// process is one run of Weir: its workers, client and in-memory state. It implements the interfaces
// that the updater depends on.
type process struct {
	stage    *Stage
	name     string
	ctx      context.Context
	cancel   context.CancelFunc
	stopDone chan struct{}
	updater  *updater.Workers
	client   *azure.Client
	writes   *ratelimit.Budgets
	// killed is set when the process is killed; later actions have no effect. Guarded by the stage's
	// mu.
	killed bool
	// resolvedPools are the pools of batched updates with the last response received when it died. Unlike a
	// real process, it may still resolve them.
	resolvedPools map[lb.PoolKey]bool
	// isStopping: a graceful shutdown is requested, for example after losing leadership.
	isStopping bool
	// isOldLeader: another process leads. Attempts are no longer tracked, and writes are violations.
	isOldLeader bool
	// fence is checked before each write; nil without an election. epoch is its leadership epoch.
	fence *leader.Fence
	epoch leader.Epoch
	// The process's cache of the cluster, and its delays.
	cache       view
	watchDelays map[object]*watchDelay
	// handledNodes are the nodes that the process has handled.
	handledNodes map[string]membership.Node
	// The process's copy of the ledger, since writes may fail, and the Retry-After read from the
	// statuses.
	statusEntries map[schedule.Ref]statusEntry
	retryAfter    map[schedule.Ref]time.Time
	// The entry versions last read or written, and concurrent changes of another process that no
	// attempt has seen.
	versions        map[schedule.Ref]int
	externalChanges map[schedule.Ref]statusEntry
	lease           *leaseClient // nil if disabled
	// killAt is where the process dies, or nil.
	killAt *killPoint
	// activeWrites counts the writes in flight by load balancer.
	activeWrites map[lb.LoadBalancerKey]int
	// awaitedWrites counts the awaited operations.
	awaitedWrites map[lb.LoadBalancerKey]int
	// acceptedWrites are the pools with accepted writes and no later read.
	acceptedWrites map[lb.LoadBalancerKey][]*pool
	// requestsInAzure counts requests in Azure by load balancer; a response takes no time unless Azure is
	// slow.
	requestsInAzure map[lb.LoadBalancerKey]int
	// unlockTimes is when another component released a worker's lock.
	unlockTimes map[lb.LoadBalancerKey]time.Time
	// Closed when the machine resumes, nil while it runs; and the time of resumption.
	resumeSignal chan struct{}
	resumeTime   time.Time
	// writeTimes are the recent writes of each subscription.
	writeTimes map[string][]time.Time
	// removeRetries is when the removal of leftover members is retried.
	removeRetries map[schedule.Ref]time.Time
}

// testToken is a token that must appear on the wire only.
const testToken = "canary-d2VpcmNhbmFyeQ"

type testCredential struct{}

func (testCredential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: testToken, ExpiresOn: time.Now().Add(1000 * time.Hour)}, nil
}

// sdkBackoff is every SDK backoff, and the longest Retry-After it waits for.
const sdkBackoff = time.Second

func (p *process) newClient() error {
	endpoint, _, err := azure.LocalEndpoint("http://127.0.0.1:8080")
	if err != nil {
		return err
	}
	p.client, err = azure.New(azure.Options{
		Endpoint: endpoint, Credential: testCredential{}, Transport: &azureTransport{process: p, azure: p.stage.emulator.Transport()},
		VirtualNetworkID: networkID, Writes: p.writes, Fence: p.fence, Retry: azure.Retry{Delay: sdkBackoff},
	})
	return err
}

// startProcess starts a process with empty memory and lists the cluster.
func (s *Stage) startProcess() error {
	s.mu.Lock()
	p := &process{
		stage: s, stopDone: make(chan struct{}), activeWrites: map[lb.LoadBalancerKey]int{}, awaitedWrites: map[lb.LoadBalancerKey]int{}, acceptedWrites: map[lb.LoadBalancerKey][]*pool{}, requestsInAzure: map[lb.LoadBalancerKey]int{},
		unlockTimes: map[lb.LoadBalancerKey]time.Time{}, removeRetries: map[schedule.Ref]time.Time{}, retryAfter: map[schedule.Ref]time.Time{},
		writeTimes: map[string][]time.Time{}, cache: s.cluster.clone(), handledNodes: maps.Clone(s.cluster.nodes), watchDelays: map[object]*watchDelay{}, statusEntries: map[schedule.Ref]statusEntry{},
		versions: map[schedule.Ref]int{}, externalChanges: map[schedule.Ref]statusEntry{},
	}
	for _, b := range s.cluster.bindings {
		p.statusEntries[b.ref], p.retryAfter[b.ref], p.versions[b.ref] = b.entry, b.retryAfter, b.version
		s.reclaimForeign(b, b.entry)
	}
	s.processCount++
	p.name = fmt.Sprintf("weir-%d", s.processCount)
	s.mu.Unlock()
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if s.opts.Replicas > 1 {
		p.fence = leader.NewFence(renewDeadline, func() time.Duration { return time.Since(s.start) })
	}
	p.writes = ratelimit.New(float64(s.opts.SharePercent)/100, s.opts.Interval)
	if err := p.newClient(); err != nil {
		return err
	}
	config := updater.Config{
		Interval: s.opts.Interval, Writes: p.writes, MaxRetries: s.opts.MaxRetries, ResyncPeriod: s.opts.DriftPeriod, AdminState: s.opts.AdminState,
		Azure: p, LoadBalancers: p, Pipeline: p, Serial: !s.opts.Pipelined, Cluster: p, StatusStore: p, Reporter: p, Log: s.log,
	}
	if s.opts.LeaseTerm > 0 {
		p.lease = newLeaseClient(p, s.opts.LeaseTerm)
		config.Lease = p.lease
	}
	p.updater = updater.New(config)
	s.mu.Lock()
	s.process = p
	s.mu.Unlock()
	s.electLeader(p)
	go func() { p.updater.Run(p.ctx); close(p.stopDone) }()
	return nil
}

// killNow ends the process: later actions have no effect, and pending responses are lost. The caller
// holds s.mu.
func (p *process) killNow(how string) {
	if p.killed {
		return
	}
	s := p.stage
	p.killed, p.resolvedPools = true, s.answeredBatches()
	if !p.isOldLeader {
		s.resetProcessState()
	}
	if how != "" {
		s.addLine("weir", "killed %s", how)
	}
	p.cancel()
}

// resetProcessState drops the state of a dead or former leader. The caller holds s.mu.
func (s *Stage) resetProcessState() {
	s.throttleGates, s.batches = map[string]*throttleGate{}, map[lb.LoadBalancerKey]*batch{}
	for _, k := range s.pools {
		k.clearState()
		if b := s.cluster.bindings[k.id.Name]; b != nil {
			k.restoreStatus(b) // the status outlives the process
		}
	}
}

// stopProcess kills the running process, if any, and waits for its end.
func (s *Stage) stopProcess(how string) {
	s.mu.Lock()
	p := s.process
	s.process = nil
	if p != nil {
		p.killNow(how)
	}
	s.mu.Unlock()
	if p != nil {
		<-p.stopDone
	}
}

// stopGracefully shuts the process down gracefully and waits for it.
func (s *Stage) stopGracefully() {
	s.mu.Lock()
	p := s.process
	p.startShutdown("")
	s.mu.Unlock()
	<-p.stopDone
	s.stopProcess("")
}

// startShutdown starts a graceful shutdown. The caller holds s.mu.
func (p *process) startShutdown(how string) {
	p.isStopping = true
	name := ""
	if p.isOldLeader {
		name = p.name + " "
	}
	p.stage.addLine("weir", "%s", strings.TrimRight(name+"is not the leader any more "+how, " "))
	p.cancel()
}

// runningProcess returns the running process, or nil.
func (s *Stage) runningProcess() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil || s.process.killed {
		return nil
	}
	return s.process
}

func (p *process) GetPool(ctx context.Context, id lb.PoolID) (lb.Pool, error) {
	p.setPhase(id, "get")
	return p.client.GetPool(ctx, id)
}

func (p *process) ResolveMachines(ctx context.Context, pool lb.Pool) (lb.Pool, error) {
	return p.client.ResolveMachines(ctx, pool)
}

func (p *process) PutPool(ctx context.Context, pool lb.Pool) (lb.Pool, error) {
	s, id := p.stage, pool.ID.LoadBalancer
	p.setPhase(pool.ID, "put")
	s.mu.Lock()
	p.recordWriteStart(id, "by pool "+pool.ID.Name, false)
	s.mu.Unlock()
	defer p.recordWrite(id)
	return p.client.PutPool(ctx, pool)
}

func (p *process) recordWrite(id lb.LoadBalancerID) {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	p.activeWrites[id.Key()]--
}

func (p *process) setPhase(id lb.PoolID, phase string) {
	s := p.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.isOldLeader {
		return
	}
	k := s.pools[id.Key()]
	s.batchOf(id.LoadBalancer).queried = nil
	if k == nil || p.killed {
		return
	}
	if phase == "get" && k.isRepeatedRead() {
		k.attempt.phase, k.attempt.requests = phase, 0
		return
	}
	if k.attempt == nil || phase == "get" {
		s.recordAttempt(k)
	}
	k.attempt.phase, k.attempt.requests = phase, 0
}

// maxReadDistance is the maximum time between the reads of one attempt.
const maxReadDistance = 11 * time.Second

// isRepeatedRead reports whether a read belongs to the current attempt: its first write met 412 or a
// Failed load balancer, and it may read more than once before the second. The caller holds the
// stage's mu.
func (p *pool) isRepeatedRead() bool {
	a := p.attempt
	if a == nil || a.isOver {
		return false
	}
	repeated := a.phase == "put" && !a.isConflict && p.lastAnswer.kind == http.MethodPut && (p.lastAnswer.status == http.StatusPreconditionFailed || p.lastAnswer.parentFailed) ||
		a.phase == "get" && a.isConflict && time.Since(p.lastAnswer.at) <= maxReadDistance
	a.isConflict = a.isConflict || repeated
	return repeated
}

// Enter implements updater.Azure. Workers that wake at the same instant enter in the order of
// their distance, for determinism.
func (p *process) Enter(id lb.LoadBalancerID) (until time.Time, reason string) {
	p.waitRunning(lb.PoolID{LoadBalancer: id})
	time.Sleep(p.stage.latencyTo(id) / 1000)
	return p.client.Enter(id)
}
