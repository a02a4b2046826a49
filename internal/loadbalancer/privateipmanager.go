// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"
)

// PrivateIPRecord holds the persisted reservations.
type PrivateIPRecord struct {
	// Version is opaque; writing an outdated version fails.
	Version string
	// Reservations are keyed by [AddressKey].
	Reservations map[string]PrivateIPReservation
}

// PrivateIPStore persists the reservations. Only the leader writes.
type PrivateIPStore interface {
	// ReadReservations returns an empty Version if there is no record.
	ReadReservations(ctx context.Context) (PrivateIPRecord, error)
	// WriteReservations returns the new version.
	WriteReservations(ctx context.Context, r PrivateIPRecord) (version string, err error)
}

// storeTimeout: rounds of other load balancers wait for it.
const storeTimeout = 10 * time.Second

// PrivateIPConfig configures a [Manager].
type PrivateIPConfig struct {
	// Store persists the reservations; nil keeps them in memory.
	Store         PrivateIPStore
	LoadBalancers []string
	// Limit returns the maximum number of addresses of a namespace on one load balancer, in use or
	// reserved.
	Limit func(namespace string) int
	Log   *slog.Logger
}

// PrivateIPManager reserves the private addresses that Services request for their namespaces: while in use, and for
// PrivateIPTTL afterwards, so that a Service can be recreated. It is safe for concurrent use.
type PrivateIPManager struct {
	cfg PrivateIPConfig

	slot chan struct{} // lock for the fields below, held across API calls
	// record must be read if its Reservations are nil; readErr is the last read error.
	record  PrivateIPRecord
	readErr error
}

// NewPrivateIPManager returns a [Manager].
func NewPrivateIPManager(cfg PrivateIPConfig) *PrivateIPManager {
	return &PrivateIPManager{cfg: cfg, slot: make(chan struct{}, 1)}
}

// Load reads the record unless it is cached.
func (p *PrivateIPManager) Load(ctx context.Context) {
	p.slot <- struct{}{}
	defer func() { <-p.slot }()
	if p.record.Reservations != nil {
		return
	}
	if p.cfg.Store == nil {
		p.record.Reservations = map[string]PrivateIPReservation{}
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	record, err := p.cfg.Store.ReadReservations(ctx)
	if err != nil {
		p.readErr = fmt.Errorf("the reservations of private addresses cannot be read: %w", err)
		return
	}
	if record.Reservations == nil {
		record.Reservations = map[string]PrivateIPReservation{}
	}
	p.record, p.readErr = record, nil
}

// Check returns the Services rejected, by owner. users are those shown by the load balancer.
func (p *PrivateIPManager) Check(users PrivateIPUsers, requests []PrivateIPRequest, now time.Time) map[string]error {
	p.slot <- struct{}{}
	defer func() { <-p.slot }()
	return checkRequests(p.record.Reservations, p.recordErr(), users, requests, now)
}

func (p *PrivateIPManager) recordErr() error {
	switch {
	case p.record.Reservations != nil:
		return nil
	case p.readErr != nil:
		return p.readErr
	}
	return errors.New("the reservations of private addresses have not been read yet")
}

// Reserve records addresses before their use on a load balancer. It returns the rejected Services,
// by owner.
func (p *PrivateIPManager) Reserve(ctx context.Context, loadBalancer string, users PrivateIPUsers, requests []PrivateIPRequest, now time.Time) map[string]error {
	p.slot <- struct{}{}
	defer func() { <-p.slot }()
	rejected := checkRequests(p.record.Reservations, p.recordErr(), users, requests, now)
	if p.recordErr() != nil {
		return rejected
	}
	claims := map[string]string{}
	for _, w := range requests {
		for _, key := range w.Keys {
			if rejected[w.Owner] == nil {
				claims[key] = w.namespace()
			}
		}
	}
	before := p.record.Reservations
	err := p.save(ctx, loadBalancerState{name: loadBalancer, users: users, claims: claims}, now)
	if err == nil {
		return rejected
	}
	for _, w := range requests {
		for _, key := range w.Keys {
			r := before[key]
			recorded := r.Namespace == w.namespace() && r.Expires.IsZero()
			if len(users[key]) == 0 && !recorded && rejected[w.Owner] == nil {
				rejected[w.Owner] = err
			}
		}
	}
	return rejected
}

// RecordUsers records the observed users of a load balancer's addresses.
func (p *PrivateIPManager) RecordUsers(ctx context.Context, loadBalancer string, users PrivateIPUsers, now time.Time) {
	p.slot <- struct{}{}
	defer func() { <-p.slot }()
	if p.record.Reservations != nil {
		_ = p.save(ctx, loadBalancerState{name: loadBalancer, users: users}, now)
	}
}

// save reads the record again after an error, because the write may have succeeded. The caller
// holds the lock.
func (p *PrivateIPManager) save(ctx context.Context, s loadBalancerState, now time.Time) error {
	s.others = slices.DeleteFunc(slices.Clone(p.cfg.LoadBalancers), func(name string) bool { return strings.EqualFold(name, s.name) })
	next := nextRecord(p.record.Reservations, s, p.cfg.Limit, now)
	known := maps.Clone(p.record.Reservations)
	maps.DeleteFunc(known, func(_ string, r PrivateIPReservation) bool { return r.isExpired(now) }) // removed with the next change
	if maps.Equal(next, known) {
		return nil
	}
	version := ""
	if p.cfg.Store != nil {
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		var err error
		version, err = p.cfg.Store.WriteReservations(ctx, PrivateIPRecord{Version: p.record.Version, Reservations: next})
		if err != nil {
			p.record, p.readErr = PrivateIPRecord{}, nil
			err = fmt.Errorf("the reservations of private addresses cannot be written: %w", err)
			p.cfg.Log.WarnContext(ctx, "private addresses are given to no other Service until reservations can be recorded", "loadBalancer", s.name, "err", err)
			return err
		}
	}
	p.record = PrivateIPRecord{Version: version, Reservations: next}
	return nil
}
