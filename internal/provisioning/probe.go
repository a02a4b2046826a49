// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/provisioning/policy"
)

// Bounds for concurrent reachability probes.
const (
	maxProbes             = 8
	maxProbesPerNamespace = 2
	probeTimeout          = 10 * time.Second
)

// probeTracker tracks the reachability probes of waiting Provisions. Safe for concurrent use.
type probeTracker struct {
	requeue func(types.NamespacedName)

	mu           sync.Mutex
	states       map[types.NamespacedName]policy.ProbeState
	running      map[types.NamespacedName]bool
	perNamespace map[string]int

	succeeded, failed atomic.Uint64
}

func newProbeTracker(requeue func(types.NamespacedName)) *probeTracker {
	return &probeTracker{
		requeue: requeue, states: map[types.NamespacedName]policy.ProbeState{},
		running: map[types.NamespacedName]bool{}, perNamespace: map[string]int{},
	}
}

func (p *probeTracker) stateFor(key types.NamespacedName) policy.ProbeState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.states[key]
}

func (p *probeTracker) deleteState(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.states, key)
}

func (p *probeTracker) updateState(key types.NamespacedName, to func(policy.ProbeState) policy.ProbeState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if current := to(p.states[key]); current != (policy.ProbeState{}) {
		p.states[key] = current
	} else {
		delete(p.states, key)
	}
}

func (p *probeTracker) reserveSlot(key types.NamespacedName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[key] || len(p.running) >= maxProbes || p.perNamespace[key.Namespace] >= maxProbesPerNamespace {
		return false
	}
	p.running[key] = true
	p.perNamespace[key.Namespace]++
	return true
}

func (p *probeTracker) countResult(answered bool) {
	if answered {
		p.succeeded.Add(1)
		return
	}
	p.failed.Add(1)
}

func (p *probeTracker) releaseSlot(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, key)
	if p.perNamespace[key.Namespace]--; p.perNamespace[key.Namespace] == 0 {
		delete(p.perNamespace, key.Namespace)
	}
}

// probeTarget probes the target of a waiting Provision if a probe is due, and returns the requeue delay,
// at most after; 0 waits for a change.
func (r *Reconciler) probeTarget(p *v1alpha1.Provision, job string, retryPolicy policy.Policy, after time.Duration) time.Duration {
	key := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	address, host, remote := probeAddress(p)
	if !remote {
		r.probes.deleteState(key)
		return after
	}
	state, now := stateFromStatus(&p.Status), time.Now()
	in := policy.Input{SpecDigest: job, Policy: retryPolicy}
	var at time.Time
	isDue := false
	r.probes.updateState(key, func(k policy.ProbeState) policy.ProbeState {
		random := rand.Float64() //nolint:gosec // jitter
		if k, at = state.NextProbe(k, in, random, now); after <= 0 || at.IsZero() || now.Before(at) {
			return k
		}
		isDue = true // without a free slot, try again one interval later
		k.Next = state.RecordProbe(k, false, retryPolicy, random, now).Next
		at = k.Next
		return k
	})
	if isDue {
		r.startProbe(key, address, host, state, retryPolicy)
	}
	if after <= 0 || at.IsZero() {
		return after
	}
	return min(after, max(time.Millisecond, at.Sub(now)))
}

func (r *Reconciler) startProbe(key types.NamespacedName, address, host string, s policy.State, retryPolicy policy.Policy) {
	if !r.probes.reserveSlot(key) {
		return
	}
	began := r.attempts.runBackground(func(ctx context.Context) {
		defer r.probes.releaseSlot(key)
		err := r.targetPolicy().checkReachable(ctx, address, host)
		if ctx.Err() != nil {
			return
		}
		r.probes.countResult(err == nil)
		r.probes.updateState(key, func(k policy.ProbeState) policy.ProbeState {
			if k.Number != s.Number || !k.Since.Equal(s.Since) {
				return k // a newer wait has started
			}
			return s.RecordProbe(k, err == nil, retryPolicy, rand.Float64(), time.Now()) //nolint:gosec // jitter
		})
		r.probes.requeue(key)
	})
	if !began {
		r.probes.releaseSlot(key)
	}
}

func probeAddress(p *v1alpha1.Provision) (address, host string, ok bool) {
	if p.Spec.Target.KubeconfigSecret == nil {
		return "", "", false
	}
	u, err := url.Parse(p.Status.Target)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return "", "", false
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")), u.Hostname(), true
}

// checkReachable opens a connection as an attempt does and sends no data, so the certificate is not
// verified.
func (d dialPolicy) checkReachable(ctx context.Context, address, host string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := d.dialFunc()(ctx, "tcp", address)
	if err != nil {
		return err
	}
	secure := tls.Client(conn, &tls.Config{ServerName: host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}) //nolint:gosec // no credentials are in it
	return errors.Join(secure.HandshakeContext(ctx), conn.Close())
}
