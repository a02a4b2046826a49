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

// Record is the persisted reservations.
type Record struct {
	// Version is opaque to this package; a write of a version that is not the newest fails.
	Version string
	// Reservations are by the key of the address.
	Reservations map[string]Reservation
}

// Store persists the reservations. Only the leader writes.
type Store interface {
	// ReadReservations returns no Version if there is no record.
	ReadReservations(ctx context.Context) (Record, error)
	// WriteReservations writes the reservations and returns the new version.
	WriteReservations(ctx context.Context, r Record) (version string, err error)
}

// storeTimeout bounds one read or write of the record. Rounds of other load balancers wait for it.
const storeTimeout = 10 * time.Second

// Config is what a Keeper works with.
type Config struct {
	// Store persists the reservations; nil keeps them in memory.
	Store Store
	// LoadBalancers are the names of all load balancers of the cluster.
	LoadBalancers []string
	// Limit returns how many addresses a namespace may have on one load balancer, in use or reserved.
	Limit func(namespace string) int
	Log   *slog.Logger
}

// Keeper keeps the reservations of a cluster. Its methods may be called from any goroutine.
type Keeper struct {
	cfg Config

	slot chan struct{} // has room for one user of what follows; it is held across calls of the API server
	// record is cached; nil Reservations have to be read, and unreadable is why they could not be.
	record     Record
	unreadable error
}

// New returns a Keeper.
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

// Check returns the Services that may not have an address that they request, by owner. users are those that
// the load balancer shows.
func (k *Keeper) Check(users Users, wants []Want, now time.Time) map[string]error {
	k.slot <- struct{}{}
	defer func() { <-k.slot }()
	return check(k.record.Reservations, k.missing(), users, wants, now)
}

// missing returns why the record is not known; nil if it is.
func (k *Keeper) missing() error {
	switch {
	case k.record.Reservations != nil:
		return nil
	case k.unreadable != nil:
		return k.unreadable
	}
	return errors.New("the reservations of private addresses have not been read yet")
}

// Reserve records the addresses that Services are about to use on a load balancer. It returns the Services
// that may not have theirs, by owner.
func (k *Keeper) Reserve(ctx context.Context, on string, users Users, wants []Want, now time.Time) map[string]error {
	k.slot <- struct{}{}
	defer func() { <-k.slot }()
	refused := check(k.record.Reservations, k.missing(), users, wants, now)
	if k.missing() != nil {
		return refused
	}
	claims := map[string]string{}
	for _, w := range wants {
		for _, key := range w.Keys {
			if refused[w.Owner] == nil {
				claims[key] = w.namespace()
			}
		}
	}
	before := k.record.Reservations
	err := k.save(ctx, state{on: on, users: users, claims: claims}, now)
	if err == nil {
		return refused
	}
	for _, w := range wants {
		for _, key := range w.Keys {
			r := before[key]
			recorded := r.Namespace == w.namespace() && r.Expires.IsZero()
			if len(users[key]) == 0 && !recorded && refused[w.Owner] == nil {
				refused[w.Owner] = err
			}
		}
	}
	return refused
}

// Note records what a load balancer shows: addresses in use, and those that are not used any more.
func (k *Keeper) Note(ctx context.Context, on string, users Users, now time.Time) {
	k.slot <- struct{}{}
	defer func() { <-k.slot }()
	if k.record.Reservations != nil {
		_ = k.save(ctx, state{on: on, users: users}, now)
	}
}

// save writes the record if it changes. After a failure it is read again, since the write may have succeeded.
// The caller holds the lock.
func (k *Keeper) save(ctx context.Context, s state, now time.Time) error {
	s.others = slices.DeleteFunc(slices.Clone(k.cfg.LoadBalancers), func(name string) bool { return strings.EqualFold(name, s.on) })
	all := next(k.record.Reservations, s, k.cfg.Limit, now)
	known := maps.Clone(k.record.Reservations)
	maps.DeleteFunc(known, func(_ string, r Reservation) bool { return r.expired(now) }) // these go with the next change
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
