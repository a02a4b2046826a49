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

// cluster runs a trace through the shipped updater and Azure client against the emulator. It
// implements the updater's view of Kubernetes and the transport to Azure.
type cluster struct {
	trace Trace
	name  string // prefix of load balancer names
	cost  Cost
	start time.Time
	emu   *armemu.Emulator
	lanes *poolupdate.Lanes

	mu       sync.Mutex
	want     []members
	recorded [][]netip.Addr
	read     []time.Duration // last read of the desired members
	prepared []bool          // read since the last write
	writes   []Write
	refused  int // 429 responses
}

// Weir runs a trace with Weir inside the caller's bubble, in an Azure known to support the
// strategy, as determined by weir probe-azure.
func (t Trace) Weir(strategy wholewrite.Strategy, latency armemu.Latency, share float64) ([]Write, error) {
	c, err := newCluster("lb", t, newAzure(latency), CostOf(strategy, latency), share)
	if err != nil {
		return nil, err
	}
	c.play()
	return c.writes, nil
}

// allowing is an Azure that accepts writes of whole load balancers and does not revert superseded
// writes.
var allowing = behaviour.Behaviour{
	WholeWriteAddresses: behaviour.Taken, WholeWriteAdminStates: behaviour.Taken, Overlap: behaviour.Supersede,
}.Or(behaviour.Assumed())

func newAzure(latency armemu.Latency) *armemu.Emulator {
	return armemu.New(armemu.Options{Seed: 1, LatencyScale: 1, Latency: latency, LatencyFixed: true, Throttle: armemu.AzureLimits(), CallLogCap: 1, Behaviour: allowing})
}

// newCluster returns a cluster with its load balancers in Azure.
func newCluster(name string, t Trace, emu *armemu.Emulator, cost Cost, share float64) (*cluster, error) {
	c := &cluster{
		trace: t, name: name, start: time.Now(), cost: cost, emu: emu, want: slices.Clone(t.First),
		recorded: make([][]netip.Addr, len(t.First)), read: make([]time.Duration, len(t.First)), prepared: make([]bool, len(t.First)),
	}
	if err := c.build(); err != nil {
		return nil, err
	}
	return c, c.connect(share)
}

// play runs the changes of the trace until its end.
func (c *cluster) play() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { c.lanes.Run(ctx); close(ended) }()
	for _, change := range c.trace.Changes {
		time.Sleep(change.At - time.Since(c.start))
		c.mu.Lock()
		before := c.want[change.Pool]
		c.want[change.Pool] = change.Want
		c.mu.Unlock()
		c.lanes.Add(c.operation(change, before))
	}
	time.Sleep(c.trace.Lasts - time.Since(c.start))
	stop()
	<-ended
}

// CostOf returns the cost of a write in the emulator's profile. The end of a write is detected by
// reads after two and five seconds, and by polls every ten. Acceptance after a second counts for
// pipelined writes only; otherwise it is part of the profile.
func CostOf(strategy wholewrite.Strategy, latency armemu.Latency) Cost {
	c := Cost{Strategy: strategy, Effect: 1500 * time.Millisecond, Whole: 3 * time.Second, Busy: 2 * time.Second}
	if strategy == wholewrite.Whole {
		c.Busy = 5 * time.Second
	}
	if latency == armemu.Busy {
		c.Effect, c.Whole, c.Busy = 27*time.Second, 27*time.Second, 30*time.Second
	}
	if strategy == wholewrite.Pipelined {
		c.Accept = time.Second
	}
	return c
}

func (c *cluster) operation(change Change, before members) poolschedule.Operation {
	name := fmt.Sprintf("p%d", change.Pool)
	return poolschedule.Operation{
		Ref: poolschedule.Ref{Namespace: "default", Name: name, UID: name}, Pool: c.pool(change.Pool),
		Service: poolschedule.ServiceName{Namespace: "default", Name: name}, ChangedAt: time.Now(),
		Stake: poolschedule.Stake{
			Stays: before.and(change.Want), Leaves: before.but(change.Want), Returns: change.Want.but(before),
		},
	}
}

func (c *cluster) pool(n int) lb.PoolID {
	return lb.PoolID{
		LoadBalancer: lb.LoadBalancerID{SubscriptionID: "sub", ResourceGroup: "rg", Name: fmt.Sprintf("%s%d", c.name, c.trace.Balancers[n])},
		Name:         fmt.Sprintf("p%d", n),
	}
}

// addresses returns the addresses of members.
func addresses(m members) []lb.Address {
	var all []lb.Address
	for n := range mostNodes {
		if m.has(n) {
			all = append(all, lb.Address{Name: fmt.Sprintf("n%d", n), IP: netip.AddrFrom4([4]byte{10, 0, 1, byte(n)})})
		}
	}
	return all
}

// build creates the trace's initial state in Azure.
func (c *cluster) build() error {
	if err := c.emu.Put(networkID, []byte(`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8"]}}}`)); err != nil {
		return err
	}
	for p := range c.trace.First {
		id := c.pool(p)
		if _, there := c.emu.Get(id.LoadBalancer.String()); !there {
			if err := c.emu.Put(id.LoadBalancer.String(), []byte(`{"location":"eastus","sku":{"name":"Standard"},"properties":{}}`)); err != nil {
				return err
			}
		}
		var list []string
		for _, a := range addresses(c.trace.First[p]) {
			c.recorded[p] = append(c.recorded[p], a.IP)
			list = append(list, fmt.Sprintf(`{"name":%q,"properties":{"ipAddress":%q}}`, a.Name, a.IP))
		}
		body := fmt.Sprintf(`{"properties":{"virtualNetwork":{"id":%q},"loadBalancerBackendAddresses":[%s]}}`, networkID, strings.Join(list, ","))
		if err := c.emu.Put(id.String(), []byte(body)); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) connect(share float64) error {
	endpoint, _, err := azure.Emulator("http://127.0.0.1:8080")
	if err != nil {
		return err
	}
	writes := pace.New(share, Interval)
	client, err := azure.New(azure.Options{Endpoint: endpoint, Credential: credential{}, Transport: c, VirtualNetworkID: networkID, Writes: writes})
	if err != nil {
		return err
	}
	c.lanes = poolupdate.New(poolupdate.Config{
		Interval: Interval, Writes: writes, MaxRetries: 3, Azure: client, Cluster: c, Ledger: c, Reporter: c, Log: slog.New(slog.DiscardHandler),
		Behaviour: allowing, Whole: client, WholeWrites: c.cost.Strategy.OfWhole(), Pipeline: client, Pipelined: c.cost.Strategy.OfOverlapping(),
	})
	return nil
}

type credential struct{}

// GetToken implements azcore.TokenCredential.
func (credential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "bench", ExpiresOn: time.Now().Add(1000 * time.Hour)}, nil
}

// Do implements azure.Transport.
func (c *cluster) Do(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPut {
		time.Sleep(c.cost.Accept)
	}
	resp, err := c.emu.Transport().Do(req)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		c.refused++
	case req.Method == http.MethodPut && resp.StatusCode < 300:
		c.accepted(req.URL.Path)
	}
	return resp, nil
}

// accepted records an accepted write, which takes effect together with superseded ones. Requires
// the lock.
func (c *cluster) accepted(path string) {
	_, path, _ = strings.Cut(path, "/loadBalancers/")
	balancer, name, one := strings.Cut(path, "/backendAddressPools/p")
	only, now, effect := 0, time.Since(c.start), c.cost.Effect
	if _, err := fmt.Sscanf(name, "%d", &only); one && err != nil {
		return
	}
	if !one {
		effect = c.cost.Whole
	}
	for i, w := range c.writes {
		if w.Effect > now && c.balancer(w.Pool) == balancer {
			c.writes[i].Effect = now + effect
		}
	}
	part := false
	for p := range c.prepared {
		if c.balancer(p) != balancer || one && p != only || !one && !c.prepared[p] {
			continue
		}
		c.writes = append(c.writes, Write{Pool: p, From: c.read[p], Effect: now + effect, Part: part})
		c.prepared[p], part = false, true
	}
}

func (c *cluster) balancer(pool int) string { return c.pool(pool).LoadBalancer.Name }

func number(ref poolschedule.Ref) int {
	var n int
	_, _ = fmt.Sscanf(ref.Name, "p%d", &n)
	return n
}

// Relevant implements poolupdate.Cluster.
func (c *cluster) Relevant(poolschedule.Operation) bool { return true }

// Desired implements poolupdate.Cluster.
func (c *cluster) Desired(ref poolschedule.Ref) (poolwrite.Desired, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := number(ref)
	c.read[p], c.prepared[p] = time.Since(c.start), true
	return poolwrite.Desired{
		Addresses: addresses(c.want[p]), Ours: func(netip.Addr) bool { return true }, Alone: true,
		Recorded: poolwrite.Recorded{Written: c.recorded[p], Taken: true},
	}, nil
}

// Record implements poolattempt.Ledger.
func (c *cluster) Record(_ context.Context, ref poolschedule.Ref, intent poolwrite.Intent) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recorded[number(ref)] = intent.Written
	return nil
}

// Report implements poolupdate.Reporter.
func (c *cluster) Report(_ context.Context, r poolupdate.Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Settled {
		c.recorded[number(r.Ref)] = r.Written
	}
}

// Wait implements poolupdate.Reporter.
func (c *cluster) Wait(poolupdate.Waiting) {}
