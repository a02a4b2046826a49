// SPDX-License-Identifier: Apache-2.0

package privateip

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

// Record holds the persisted reservations.
type Record struct {
	// Version is opaque; writing an outdated version fails.
	Version string
	// Reservations are keyed by [Key].
	Reservations map[string]Reservation
}

// Store persists the reservations. Only the leader writes.
type Store interface {
	// ReadReservations returns an empty Version if there is no record.
	ReadReservations(ctx context.Context) (Record, error)
	// WriteReservations returns the new version.
	WriteReservations(ctx context.Context, r Record) (version string, err error)
}

// storeTimeout: rounds of other load balancers wait for it.
const storeTimeout = 10 * time.Second

// Config configures a [Keeper].
type Config struct {
	// Store persists the reservations; nil keeps them in memory.
	Store         Store
	LoadBalancers []string
	// Limit returns the maximum number of addresses of a namespace on one load balancer, in use or
	// reserved.
	Limit func(namespace string) int
	Log   *slog.Logger
}

// Keeper manages the reservations of a cluster. It is safe for concurrent use.
type Keeper struct {
	cfg Config

	slot chan struct{} // lock for the fields below, held across API calls
	// record must be read if its Reservations are nil; readErr is the last read error.
	record     Record
	unreadable error
}

// New returns a [Keeper].
func New(cfg Config) *Keeper { return &Keeper{cfg: cfg, slot: make(chan struct{}, 1)} }

// Load reads the record unless it is cached.
func (k *Keeper) Load(ctx context.Context) {
	k.slot <- struct{}{}
	defer func() { <-k.slot }()
	if k.record.Reservations != nil {
		return
	}
	if k.cfg.Store == nil {
		k.record.Reservations = map[string]Reservation{}
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	record, err := k.cfg.Store.ReadReservations(ctx)
	if err != nil {
		k.unreadable = fmt.Errorf("the reservations of private addresses cannot be read: %w", err)
		return
	}
	if record.Reservations == nil {
		record.Reservations = map[string]Reservation{}
	}
	k.record, k.unreadable = record, nil
}

// Check returns the Services rejected, by owner. users are those shown by the load balancer.
func (k *Keeper) Check(users Users, requests []Want, now time.Time) map[string]error {
	k.slot <- struct{}{}
	defer func() { <-k.slot }()
	return check(k.record.Reservations, k.missing(), users, requests, now)
}

func (k *Keeper) missing() error {
	switch {
	case k.record.Reservations != nil:
		return nil
	case k.unreadable != nil:
		return k.unreadable
	}
	return errors.New("the reservations of private addresses have not been read yet")
}

// Reserve records addresses before their use on a load balancer. It returns the rejected Services,
// by owner.
func (k *Keeper) Reserve(ctx context.Context, loadBalancer string, users Users, requests []Want, now time.Time) map[string]error {
	k.slot <- struct{}{}
	defer func() { <-k.slot }()
	rejected := check(k.record.Reservations, k.missing(), users, requests, now)
	if k.missing() != nil {
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
	before := k.record.Reservations
	err := k.save(ctx, state{on: loadBalancer, users: users, claims: claims}, now)
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

// Note records the observed users of a load balancer's addresses.
func (k *Keeper) Note(ctx context.Context, loadBalancer string, users Users, now time.Time) {
	k.slot <- struct{}{}
	defer func() { <-k.slot }()
	if k.record.Reservations != nil {
		_ = k.save(ctx, state{on: loadBalancer, users: users}, now)
	}
}

// save reads the record again after an error, because the write may have succeeded. The caller
// holds the lock.
func (k *Keeper) save(ctx context.Context, s state, now time.Time) error {
	s.others = slices.DeleteFunc(slices.Clone(k.cfg.LoadBalancers), func(name string) bool { return strings.EqualFold(name, s.on) })
	all := next(k.record.Reservations, s, k.cfg.Limit, now)
	known := maps.Clone(k.record.Reservations)
	maps.DeleteFunc(known, func(_ string, r Reservation) bool { return r.expired(now) }) // removed with the next change
	if maps.Equal(all, known) {
		return nil
	}
	version := ""
	if k.cfg.Store != nil {
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		var err error
		version, err = k.cfg.Store.WriteReservations(ctx, Record{Version: k.record.Version, Reservations: all})
		if err != nil {
			k.record, k.unreadable = Record{}, nil
			err = fmt.Errorf("the reservations of private addresses cannot be written: %w", err)
			k.cfg.Log.WarnContext(ctx, "private addresses are given to no other Service until reservations can be recorded", "loadBalancer", s.on, "err", err)
			return err
		}
	}
	k.record = Record{Version: version, Reservations: all}
	return nil
}
