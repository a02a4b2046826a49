// SPDX-License-Identifier: Apache-2.0

package provisions

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
	"weir.dev/weir/internal/provision"
)

// Bounds for concurrent reachability probes.
const (
	mostKnocks            = 8
	mostKnocksInNamespace = 2
	knockWithin           = 10 * time.Second
)

// knocks tracks the reachability probes of waiting Provisions. Safe for concurrent use.
type knocks struct {
	requeue func(types.NamespacedName)

	mu    sync.Mutex
	all   map[types.NamespacedName]provision.Knocks
	under map[types.NamespacedName]bool
	in    map[string]int

	answered, away atomic.Uint64
}

func newKnocks(requeue func(types.NamespacedName)) *knocks {
	return &knocks{
		requeue: requeue, all: map[types.NamespacedName]provision.Knocks{},
		under: map[types.NamespacedName]bool{}, in: map[string]int{},
	}
}

func (k *knocks) of(key types.NamespacedName) provision.Knocks {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[key]
}

func (k *knocks) forget(key types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.all, key)
}

func (k *knocks) change(key types.NamespacedName, to func(provision.Knocks) provision.Knocks) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := to(k.all[key]); now != (provision.Knocks{}) {
		k.all[key] = now
	} else {
		delete(k.all, key)
	}
}

func (k *knocks) begins(key types.NamespacedName) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.under[key] || len(k.under) >= mostKnocks || k.in[key.Namespace] >= mostKnocksInNamespace {
		return false
	}
	k.under[key] = true
	k.in[key.Namespace]++
	return true
}

func (k *knocks) count(answered bool) {
	if answered {
		k.answered.Add(1)
		return
	}
	k.away.Add(1)
}

func (k *knocks) ends(key types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.under, key)
	if k.in[key.Namespace]--; k.in[key.Namespace] == 0 {
		delete(k.in, key.Namespace)
	}
}

// knock probes the target of a waiting Provision if a probe is due, and returns the requeue delay,
// at most after; 0 waits for a change.
func (r *Room) knock(p *v1alpha1.Provision, job string, policy provision.Policy, after time.Duration) time.Duration {
	key := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	address, host, remote := knockAt(p)
	if !remote {
		r.knocks.forget(key)
		return after
	}
	state, now := stateOf(&p.Status), time.Now()
	in := provision.Input{Job: job, Policy: policy}
	var at time.Time
	isDue := false
	r.knocks.change(key, func(k provision.Knocks) provision.Knocks {
		random := rand.Float64() //nolint:gosec // jitter
		if k, at = state.Knock(k, in, random, now); after <= 0 || at.IsZero() || now.Before(at) {
			return k
		}
		isDue = true // without a free slot, try again one interval later
		k.Next = state.Knocked(k, false, policy, random, now).Next
		at = k.Next
		return k
	})
	if isDue {
		r.knockNow(key, address, host, state, policy)
	}
	if after <= 0 || at.IsZero() {
		return after
	}
	return min(after, max(time.Millisecond, at.Sub(now)))
}

func (r *Room) knockNow(key types.NamespacedName, address, host string, s provision.State, policy provision.Policy) {
	if !r.knocks.begins(key) {
		return
	}
	began := r.attempts.aside(func(ctx context.Context) {
		defer r.knocks.ends(key)
		err := r.outward().answers(ctx, address, host)
		if ctx.Err() != nil {
			return
		}
		r.knocks.count(err == nil)
		r.knocks.change(key, func(k provision.Knocks) provision.Knocks {
			if k.Number != s.Number || !k.Since.Equal(s.Since) {
				return k // a newer wait has started
			}
			return s.Knocked(k, err == nil, policy, rand.Float64(), time.Now()) //nolint:gosec // jitter
		})
		r.knocks.requeue(key)
	})
	if !began {
		r.knocks.ends(key)
	}
}

func knockAt(p *v1alpha1.Provision) (address, host string, ok bool) {
	if p.Spec.Target.KubeconfigSecret == nil {
		return "", "", false
	}
	u, err := url.Parse(p.Status.Target)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return "", "", false
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")), u.Hostname(), true
}

// answers opens a connection as an attempt does and sends no data, so the certificate is not
// verified.
func (o outward) answers(ctx context.Context, address, host string) error {
	ctx, cancel := context.WithTimeout(ctx, knockWithin)
	defer cancel()
	conn, err := o.connects()(ctx, "tcp", address)
	if err != nil {
		return err
	}
	secure := tls.Client(conn, &tls.Config{ServerName: host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}) //nolint:gosec // no credentials are in it
	return errors.Join(secure.HandshakeContext(ctx), conn.Close())
}
