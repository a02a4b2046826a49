// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pace"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/wholewrite"
	"weir.dev/weir/lab/armemu"
)

// Interval is Weir's default.
const Interval = 30 * time.Second

const (
	groupID   = "/subscriptions/sub/resourceGroups/rg"
	networkID = groupID + "/providers/Microsoft.Network/virtualNetworks/v"
)

// traceCluster implements the updater's view of Kubernetes and the transport to Azure.
type traceCluster struct {
	trace   Trace
	name    string // of load balancer names
	cost    Cost
	start   time.Time
	azure   *armemu.Emulator
	updater *poolupdate.Workers

	mu        sync.Mutex
	desired   []nodeSet
	recorded  [][]netip.Addr
	readAt    []time.Duration // last read of the desired members
	prepared  []bool          // read since the last write
	writes    []Write
	throttled int // 429 responses
}

// RunWeir runs inside the caller's bubble, in an Azure known to support the strategy.
func (t Trace) RunWeir(strategy wholewrite.Strategy, latency armemu.Latency, share float64) ([]Write, error) {
	c, err := newCluster("lb", t, newAzure(latency), StrategyCost(strategy, latency), share)
	if err != nil {
		return nil, err
	}
	c.runTrace()
	return c.writes, nil
}

var supportedAzure = behaviour.Behavior{
	UpdateAddresses: behaviour.Accepted, UpdateAdminStates: behaviour.Accepted, Overlap: behaviour.Supersede,
}.WithDefaults(behaviour.AssumedBehavior())

func newAzure(latency armemu.Latency) *armemu.Emulator {
	return armemu.New(armemu.Options{Seed: 1, LatencyScale: 1, Latency: latency, LatencyFixed: true, Throttle: armemu.AzureLimits(), CallLogCap: 1, Behavior: supportedAzure})
}

func newCluster(name string, t Trace, emu *armemu.Emulator, cost Cost, share float64) (*traceCluster, error) {
	c := &traceCluster{
		trace: t, name: name, start: time.Now(), cost: cost, azure: emu, desired: slices.Clone(t.Initial),
		recorded: make([][]netip.Addr, len(t.Initial)), readAt: make([]time.Duration, len(t.Initial)), prepared: make([]bool, len(t.Initial)),
	}
	if err := c.createResources(); err != nil {
		return nil, err
	}
	return c, c.newUpdater(share)
}

func (c *traceCluster) runTrace() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { c.updater.Run(ctx); close(ended) }()
	for _, change := range c.trace.Changes {
		time.Sleep(change.At - time.Since(c.start))
		c.mu.Lock()
		before := c.desired[change.Pool]
		c.desired[change.Pool] = change.Want
		c.mu.Unlock()
		c.updater.Add(c.newOperation(change, before))
	}
	time.Sleep(c.trace.Duration - time.Since(c.start))
	stop()
	<-ended
}

// StrategyCost returns the cost of a write with a strategy. The end of a write is detected by reads after two and five seconds, and by polls every
// ten. Acceptance after a second counts for pipelined writes only.
func StrategyCost(strategy wholewrite.Strategy, latency armemu.Latency) Cost {
	c := Cost{Strategy: strategy, Effect: 1500 * time.Millisecond, BatchEffect: 3 * time.Second, Busy: 2 * time.Second}
	if strategy == wholewrite.BatchStrategy {
		c.Busy = 5 * time.Second
	}
	if latency == armemu.Busy {
		c.Effect, c.BatchEffect, c.Busy = 27*time.Second, 27*time.Second, 30*time.Second
	}
	if strategy == wholewrite.OverlapStrategy {
		c.Accept = time.Second
	}
	return c
}

func (c *traceCluster) newOperation(change Change, before nodeSet) poolschedule.Operation {
	name := fmt.Sprintf("p%d", change.Pool)
	return poolschedule.Operation{
		Ref: poolschedule.Ref{Namespace: "default", Name: name, UID: name}, Pool: c.poolID(change.Pool),
		Service: poolschedule.ServiceName{Namespace: "default", Name: name}, ChangedAt: time.Now(),
		Impact: poolschedule.Impact{
			Serving: before.countCommon(change.Want), Stopping: before.countMissing(change.Want), Starting: change.Want.countMissing(before),
		},
	}
}

func (c *traceCluster) poolID(n int) lb.PoolID {
	return lb.PoolID{
		LoadBalancer: lb.LoadBalancerID{SubscriptionID: "sub", ResourceGroup: "rg", Name: fmt.Sprintf("%s%d", c.name, c.trace.LoadBalancers[n])},
		Name:         fmt.Sprintf("p%d", n),
	}
}

func nodeAddresses(m nodeSet) []lb.Address {
	var all []lb.Address
	for n := range maxNodes {
		if m.hasNode(n) {
			all = append(all, lb.Address{Name: fmt.Sprintf("n%d", n), IP: netip.AddrFrom4([4]byte{10, 0, 1, byte(n)})})
		}
	}
	return all
}

func (c *traceCluster) createResources() error {
	if err := c.azure.Put(networkID, []byte(`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8"]}}}`)); err != nil {
		return err
	}
	for p := range c.trace.Initial {
		id := c.poolID(p)
		if _, there := c.azure.Get(id.LoadBalancer.String()); !there {
			if err := c.azure.Put(id.LoadBalancer.String(), []byte(`{"location":"eastus","sku":{"name":"Standard"},"properties":{}}`)); err != nil {
				return err
			}
		}
		var list []string
		for _, a := range nodeAddresses(c.trace.Initial[p]) {
			c.recorded[p] = append(c.recorded[p], a.IP)
			list = append(list, fmt.Sprintf(`{"name":%q,"properties":{"ipAddress":%q}}`, a.Name, a.IP))
		}
		body := fmt.Sprintf(`{"properties":{"virtualNetwork":{"id":%q},"loadBalancerBackendAddresses":[%s]}}`, networkID, strings.Join(list, ","))
		if err := c.azure.Put(id.String(), []byte(body)); err != nil {
			return err
		}
	}
	return nil
}

func (c *traceCluster) newUpdater(share float64) error {
	endpoint, _, err := azure.LocalEndpoint("http://127.0.0.1:8080")
	if err != nil {
		return err
	}
	writes := pace.New(share, Interval)
	client, err := azure.New(azure.Options{Endpoint: endpoint, Credential: staticCredential{}, Transport: c, VirtualNetworkID: networkID, Writes: writes})
	if err != nil {
		return err
	}
	c.updater = poolupdate.New(poolupdate.Config{
		Interval: Interval, Writes: writes, MaxRetries: 3, Azure: client, Cluster: c, StatusStore: c, Reporter: c, Log: slog.New(slog.DiscardHandler),
		Behaviour: supportedAzure, LoadBalancers: client, BatchSetting: c.cost.Strategy.BatchSetting(), Pipeline: client, PipelineSetting: c.cost.Strategy.OverlapSetting(),
	})
	return nil
}

type staticCredential struct{}

// GetToken implements azcore.TokenCredential.
func (staticCredential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "bench", ExpiresOn: time.Now().Add(1000 * time.Hour)}, nil
}

// Do implements azure.Transport.
func (c *traceCluster) Do(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPut {
		time.Sleep(c.cost.Accept)
	}
	resp, err := c.azure.Transport().Do(req)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		c.throttled++
	case req.Method == http.MethodPut && resp.StatusCode < 300:
		c.recordWrite(req.URL.Path)
	}
	return resp, nil
}

// recordWrite records a write, which takes effect together with those it superseded. Requires the
// lock.
func (c *traceCluster) recordWrite(path string) {
	_, path, _ = strings.Cut(path, "/loadBalancers/")
	balancer, name, one := strings.Cut(path, "/backendAddressPools/p")
	only, now, effect := 0, time.Since(c.start), c.cost.Effect
	if _, err := fmt.Sscanf(name, "%d", &only); one && err != nil {
		return
	}
	if !one {
		effect = c.cost.BatchEffect
	}
	for i, w := range c.writes {
		if w.Effect > now && c.loadBalancerName(w.Pool) == balancer {
			c.writes[i].Effect = now + effect
		}
	}
	part := false
	for p := range c.prepared {
		if c.loadBalancerName(p) != balancer || one && p != only || !one && !c.prepared[p] {
			continue
		}
		c.writes = append(c.writes, Write{Pool: p, From: c.readAt[p], Effect: now + effect, InBatch: part})
		c.prepared[p], part = false, true
	}
}

func (c *traceCluster) loadBalancerName(pool int) string { return c.poolID(pool).LoadBalancer.Name }

func poolNumber(ref poolschedule.Ref) int {
	var n int
	_, _ = fmt.Sscanf(ref.Name, "p%d", &n)
	return n
}

// IsNeeded implements poolupdate.Cluster.
func (c *traceCluster) IsNeeded(poolschedule.Operation) bool { return true }

// DesiredPool implements poolupdate.Cluster.
func (c *traceCluster) DesiredPool(ref poolschedule.Ref) (poolwrite.Desired, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := poolNumber(ref)
	c.readAt[p], c.prepared[p] = time.Since(c.start), true
	return poolwrite.Desired{
		Addresses: nodeAddresses(c.desired[p]), IsManaged: func(netip.Addr) bool { return true }, IsExclusive: true,
		Record: poolwrite.Record{Written: c.recorded[p], Managed: true},
	}, nil
}

// Record implements poolattempt.StatusStore.
func (c *traceCluster) Record(_ context.Context, ref poolschedule.Ref, intent poolwrite.Intent) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recorded[poolNumber(ref)] = intent.Written
	return nil
}

// Report implements poolupdate.Reporter.
func (c *traceCluster) Report(_ context.Context, r poolupdate.Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.InSync {
		c.recorded[poolNumber(r.Ref)] = r.Written
	}
}

// ReportWait implements poolupdate.Reporter.
func (c *traceCluster) ReportWait(poolupdate.Waiting) {}
