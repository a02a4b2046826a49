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
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
	"weir.dev/weir/internal/ratelimit"
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
	updater *updater.Workers

	mu       sync.Mutex
	desired  []nodeSet
	recorded [][]netip.Addr
	// recordedDown are those recorded as set Down.
	recordedDown [][]netip.Addr
	readAt       []time.Duration // last read of the desired members
	writes       []Write
	throttled    int // 429 responses
	puts         int // requests
	gets         int // requests, polls excluded
	polls        int
	down         []nodeSet // tainted nodes by pool; nil without admin states
}

// RunWeir runs inside the caller's bubble, in an Azure known to support the strategy.
func (t Trace) RunWeir(strategy Strategy, latency armemu.Latency, share float64) ([]Write, error) {
	c, err := newCluster("lb", t, newAzure(latency), StrategyCost(strategy, latency), share)
	if err != nil {
		return nil, err
	}
	c.runTrace()
	return c.writes, nil
}

var supportedAzure = behavior.Behavior{
	UpdateAddresses: behavior.Accepted, UpdateAdminStates: behavior.Accepted, Overlap: behavior.Supersede,
}.WithDefaults(behavior.AssumedBehavior())

func newAzure(latency armemu.Latency) *armemu.Emulator {
	return armemu.New(armemu.Options{Seed: 1, LatencyScale: 1, Latency: latency, LatencyFixed: true, Throttle: armemu.AzureLimits(), CallLogCap: 1, Behavior: supportedAzure})
}

func newCluster(name string, t Trace, emu *armemu.Emulator, cost Cost, share float64) (*traceCluster, error) {
	c := &traceCluster{
		trace: t, name: name, start: time.Now(), cost: cost, azure: emu, desired: slices.Clone(t.Initial),
		recorded: make([][]netip.Addr, len(t.Initial)), recordedDown: make([][]netip.Addr, len(t.Initial)), readAt: make([]time.Duration, len(t.Initial)),
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
// ten. Acceptance after a second counts for overlapping writes only.
func StrategyCost(strategy Strategy, latency armemu.Latency) Cost {
	c := Cost{Strategy: strategy, Effect: 1500 * time.Millisecond, Busy: 2 * time.Second}
	if latency == armemu.Busy {
		c.Effect, c.Busy = 27*time.Second, 30*time.Second
	}
	if strategy == Overlapping {
		c.Accept = time.Second
	}
	return c
}

func (c *traceCluster) newOperation(change Change, before nodeSet) schedule.Operation {
	name := fmt.Sprintf("p%d", change.Pool)
	return schedule.Operation{
		Ref: schedule.Ref{Namespace: "default", Name: name, UID: name}, Pool: c.poolID(change.Pool),
		Service: schedule.ServiceName{Namespace: "default", Name: name}, ChangedAt: time.Now(),
		Impact: schedule.Impact{
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
	var addresses []lb.Address
	for n := range maxNodes {
		if m.hasNode(n) {
			addresses = append(addresses, lb.Address{Name: fmt.Sprintf("n%d", n), IP: netip.AddrFrom4([4]byte{10, 0, 1, byte(n)})})
		}
	}
	return addresses
}

func (c *traceCluster) createResources() error {
	if err := c.azure.Put(networkID, []byte(`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8"]}}}`)); err != nil {
		return err
	}
	for p := range c.trace.Initial {
		id := c.poolID(p)
		if _, ok := c.azure.Get(id.LoadBalancer.String()); !ok {
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
	writes := ratelimit.New(share, Interval)
	client, err := azure.New(azure.Options{Endpoint: endpoint, Credential: staticCredential{}, Transport: c, VirtualNetworkID: networkID, Writes: writes})
	if err != nil {
		return err
	}
	c.updater = updater.New(updater.Config{
		Interval: Interval, Writes: writes, MaxRetries: 3, AdminState: true, Azure: client, Cluster: c, StatusStore: c, Reporter: c, Log: slog.New(slog.DiscardHandler),
		LoadBalancers: client, Pipeline: client, Serial: c.cost.Strategy == Serial,
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
	case req.Method == http.MethodPut:
		c.puts++
	case strings.Contains(req.URL.Path, "/loadBalancers/"):
		c.gets++
	case strings.Contains(req.URL.Path, "/operations/"):
		c.polls++
	}
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
	balancer, name, _ := strings.Cut(path, "/backendAddressPools/p")
	pool, now := 0, time.Since(c.start)
	if _, err := fmt.Sscanf(name, "%d", &pool); err != nil {
		return
	}
	effect := now + c.cost.Effect
	for i, w := range c.writes {
		if w.Effect > now && c.loadBalancerName(w.Pool) == balancer {
			c.writes[i].Effect = effect
		}
	}
	c.writes = append(c.writes, Write{Pool: pool, From: c.readAt[pool], Effect: effect})
}

func (c *traceCluster) loadBalancerName(pool int) string { return c.poolID(pool).LoadBalancer.Name }

func poolNumber(ref schedule.Ref) int {
	var n int
	_, _ = fmt.Sscanf(ref.Name, "p%d", &n)
	return n
}

// IsNeeded implements updater.Cluster.
func (c *traceCluster) IsNeeded(schedule.Operation) bool { return true }

// DesiredPool implements updater.Cluster.
func (c *traceCluster) DesiredPool(ref schedule.Ref) (diff.Desired, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := poolNumber(ref)
	c.readAt[p] = time.Since(c.start)
	return diff.Desired{
		Addresses: c.wantedAddresses(p), IsOwnAddress: func(netip.Addr) bool { return true }, IsExclusive: true,
		Record: diff.Record{Written: c.recorded[p], Down: c.recordedDown[p], Adopted: true},
	}, nil
}

// wantedAddresses requires the lock.
func (c *traceCluster) wantedAddresses(p int) []lb.Address {
	addresses := nodeAddresses(c.desired[p])
	for i, n := 0, 0; c.down != nil && n < maxNodes; n++ {
		if !c.desired[p].hasNode(n) {
			continue
		}
		if c.down[p].hasNode(n) {
			addresses[i].AdminState = lb.Down
		}
		i++
	}
	return addresses
}

// Record implements updater.StatusStore.
func (c *traceCluster) Record(_ context.Context, ref schedule.Ref, intent diff.Intent) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recorded[poolNumber(ref)], c.recordedDown[poolNumber(ref)] = intent.Written, intent.Down
	return nil
}

// Report implements updater.Reporter.
func (c *traceCluster) Report(_ context.Context, r updater.Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.InSync {
		c.recorded[poolNumber(r.Ref)], c.recordedDown[poolNumber(r.Ref)] = r.Written, r.Down
	}
}

// ReportWait implements updater.Reporter.
func (c *traceCluster) ReportWait(updater.Waiting) {}
