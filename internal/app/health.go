// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/controllers"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/requestlog"
)

const (
	healthPath = "/health"
	// healthAge is for how long the health of a rule is not read again.
	healthAge = 10 * time.Second
	// healthTimeout bounds the time to read the health of a pool.
	healthTimeout = 50 * time.Second
	// maxProbes bounds the requests for one pool.
	maxProbes = 4
	// maxHealthBytes is more than the health of 5,000 members has.
	maxHealthBytes = 4 << 20
)

// RuleHealth is what the probe of a rule reports of the members of a pool.
type RuleHealth struct {
	Rule    string            `json:"rule"`
	Probe   string            `json:"probe"`
	Members []lb.MemberHealth `json:"members"`
}

// PoolHealthError is why the health of one pool cannot be read, whatever Azure responds.
type PoolHealthError struct{ Message string }

func (e *PoolHealthError) Error() string { return e.Message }

// healthReader reads the health of rules from Azure, on demand.
type healthReader struct {
	getLoadBalancer func(ctx context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error)
	readHealth      func(ctx context.Context, id lb.LoadBalancerID, rule string) ([]lb.MemberHealth, error)
	// target returns the pool of a BackendPool.
	target func(namespace, name string) (lb.PoolID, error)
	writes *ratelimit.Budgets

	mu   sync.Mutex // held while Azure is read: one reader at a time
	read map[string]healthRecord
}

// healthRecord is what was read of a rule.
type healthRecord struct {
	at      time.Time
	members []lb.MemberHealth
	err     error
}

func newHealthReader(client *azure.Client, writes *ratelimit.Budgets, cluster func() *controllers.Cluster) *healthReader {
	return &healthReader{
		getLoadBalancer: client.GetLoadBalancer, readHealth: client.ReadHealth, writes: writes,
		target: func(namespace, name string) (lb.PoolID, error) { return poolTarget(cluster(), namespace, name) },
	}
}

// ReadPool reads the health of a BackendPool's members, once for each probe.
func (r *healthReader) ReadPool(ctx context.Context, namespace, name string) ([]RuleHealth, error) {
	pool, err := r.target(namespace, name)
	if err != nil {
		return nil, &PoolHealthError{err.Error()}
	}
	ctx = requestlog.WithCauses(ctx, requestlog.Cause{Kind: "BackendPool", Namespace: namespace, Name: name})
	r.mu.Lock()
	defer r.mu.Unlock()
	balancer, err := r.getLoadBalancer(ctx, pool.LoadBalancer)
	if err != nil {
		return nil, err
	}
	rules := balancer.ProbedRules(pool.Name)
	if len(rules) == 0 {
		return nil, &PoolHealthError{fmt.Sprintf("no rule of pool %s has a probe", pool.Name)}
	}
	var items []RuleHealth
	for _, rule := range rules[:min(len(rules), maxProbes)] {
		members, err := r.readRule(ctx, pool.LoadBalancer, rule.Name)
		if err != nil {
			return nil, err
		}
		items = append(items, RuleHealth{Rule: rule.Name, Probe: rule.Probe, Members: members})
	}
	return items, nil
}

// readRule requires r.mu.
func (r *healthReader) readRule(ctx context.Context, id lb.LoadBalancerID, rule string) ([]lb.MemberHealth, error) {
	key, now := string(id.Key())+"/"+strings.ToLower(rule), time.Now()
	maps.DeleteFunc(r.read, func(_ string, record healthRecord) bool { return now.Sub(record.at) >= healthAge })
	if record, known := r.read[key]; known {
		return record.members, record.err
	}
	if !r.writes.HasReserve(id.SubscriptionID, now) {
		return nil, errors.New("not read: Azure counts it as a write, and Weir's other writes need the rest of its share: try again in five minutes")
	}
	members, err := r.readHealth(ctx, id, rule)
	if ctx.Err() == nil {
		if r.read == nil {
			r.read = map[string]healthRecord{}
		}
		r.read[key] = healthRecord{time.Now(), members, err}
	}
	return members, err
}

// ServeHTTP serves the health of one BackendPool.
func (r *healthReader) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if !requestlog.IsLocal(q) {
		http.Error(w, "use 127.0.0.1 or localhost", http.StatusForbidden)
		return
	}
	ctx, cancel := context.WithTimeout(q.Context(), healthTimeout)
	defer cancel()
	rules, err := r.ReadPool(ctx, q.URL.Query().Get("namespace"), q.URL.Query().Get("pool"))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		code := http.StatusBadGateway
		if _, ok := errors.AsType[*PoolHealthError](err); ok {
			code = http.StatusUnprocessableEntity
		}
		http.Error(w, describeHealthError(err), code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(rules) // the client may have disconnected
}

var missingAction = regexp.MustCompile(`AuthorizationFailed.*perform action '([A-Za-z./]+)'`)

// describeHealthError names the action that Weir's identity lacks.
func describeHealthError(err error) string {
	if found := missingAction.FindStringSubmatch(err.Error()); found != nil {
		return "Weir's identity lacks the action " + found[1] + ": assign it the role config/azure-role-health.json"
	}
	return err.Error()
}

// poolTarget returns the pool of a BackendPool that Weir may read.
func poolTarget(cluster *controllers.Cluster, namespace, name string) (lb.PoolID, error) {
	p := cache.Get[v1alpha1.BackendPool](cluster.View.Pools, metadata.Key(namespace, name))
	if p == nil {
		return lb.PoolID{}, fmt.Errorf("there is no BackendPool %s", metadata.Key(namespace, name))
	}
	binding := cluster.Pools.ResolveBinding(p, time.Now())
	switch binding.State {
	case backendpool.Invalid, backendpool.NotAllowed, backendpool.Duplicate:
		return lb.PoolID{}, errors.New(binding.Message)
	}
	return binding.Pool, nil
}

// FetchHealth returns what Azure's probes report of the members of a BackendPool; the leader reads it from Azure.
func FetchHealth(ctx context.Context, w Connection, namespace, pool string) ([]RuleHealth, error) {
	at, err := url.Parse(w.Server)
	if err != nil || at.Scheme != "http" || at.Host == "" {
		return nil, &UsageError{Err: fmt.Errorf("--operator-url %q: want a URL such as %s", w.Server, LeaderServer)}
	}
	at.Path, at.RawQuery = healthPath, url.Values{"namespace": {namespace}, "pool": {pool}}.Encode()
	ctx, cancel := context.WithTimeout(ctx, healthTimeout+responseTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Transport: &http.Transport{DialContext: w.dialWithTimeout, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10}}).Do(req)
	if err != nil {
		return nil, w.addHint(cmp.Or(context.Cause(ctx), err))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1000)) // a partial body is good enough
		text := strings.TrimSpace(string(body))
		if resp.StatusCode == http.StatusUnprocessableEntity {
			return nil, &PoolHealthError{text}
		}
		return nil, errors.New(text)
	}
	var rules []RuleHealth
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxHealthBytes)).Decode(&rules); err != nil {
		return nil, fmt.Errorf("the leader's response: %w", err)
	}
	return rules, nil
}
