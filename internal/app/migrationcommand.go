// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"time"
	"unicode"
	"unicode/utf8"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/app/process"
	"weir.dev/weir/internal/kube/leases"
	"weir.dev/weir/internal/kube/record"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/migrate"
	"weir.dev/weir/internal/migration"
	"weir.dev/weir/internal/sleep"
)

// MigrationCommand reads and controls a migration with the user's permissions.
type MigrationCommand struct {
	PlanOptions
	// RecordNamespace is the namespace of Weir's record; empty means shippedNamespace.
	RecordNamespace string
}

const lookEvery = 5 * time.Second

// Status returns the state of the migration. It writes nothing.
func (d MigrationCommand) Status(ctx context.Context) (migration.Status, error) {
	p, err := newPlanning(d.PlanOptions)
	if err != nil {
		return migration.Status{}, err
	}
	if err := p.gather(ctx); err != nil {
		return migration.Status{}, err
	}
	c, err := p.migrating()
	if err != nil {
		return migration.Status{}, err
	}
	api, err := d.api()
	if err != nil {
		return migration.Status{}, err
	}
	r, err := record.Read(ctx, api, d.namespace())
	if err != nil {
		return migration.Status{}, err
	}
	leader, err := leases.Leader(ctx, api, LeaseName, time.Now())
	if err != nil {
		return migration.Status{}, err
	}
	if leader.Namespace != d.namespace() {
		leader.Holder = ""
	}
	c.Store = onRecord{r}
	return migration.Report(ctx, c, leader.Holder)
}

// Watch calls show on every change until it returns enough or ctx is done. It retries failed reads except the
// first.
func (d MigrationCommand) Watch(ctx context.Context, show func(migration.Status) (enough bool, err error)) error {
	last := ""
	for {
		s, err := d.Status(ctx)
		switch {
		case err != nil && (last == "" || ctx.Err() != nil):
			return err
		case err != nil:
			d.Log.Warn("it is looked again", "err", err)
		case s.Text() != last:
			last = s.Text()
			if enough, err := show(s); enough || err != nil {
				return err
			}
		}
		if err := sleep.For(ctx, lookEvery); err != nil {
			return err
		}
	}
}

// Stop requests a stop before the next step and returns the effective request: an earlier one is retained.
func (d MigrationCommand) Stop(ctx context.Context, why string) (migrate.Wish, error) {
	var effective migrate.Wish
	err := d.ask(ctx, why, func(_ record.Record, a *migrate.Asked, request migrate.Wish) error {
		if a.Stop == nil {
			a.Stop = &request
		}
		effective = *a.Stop
		return nil
	})
	return effective, err
}

// Undo requests a rollback; it replaces an earlier stop. It fails once a step is irreversible.
func (d MigrationCommand) Undo(ctx context.Context, why string) (migrate.Wish, error) {
	var effective migrate.Wish
	err := d.ask(ctx, why, func(r record.Record, a *migrate.Asked, request migrate.Wish) error {
		j, err := r.Migration()
		if err != nil {
			return err
		}
		if *a, err = a.TakeBack(j, request); err == nil {
			effective = *a.Stop
		}
		return err
	})
	return effective, err
}

// Resume withdraws a stop and returns it; nil if there is none.
func (d MigrationCommand) Resume(ctx context.Context) (*migrate.Wish, error) {
	var was *migrate.Wish
	err := d.ask(ctx, "", func(_ record.Record, a *migrate.Asked, _ migrate.Wish) error {
		was, a.Stop = a.Stop, nil
		return nil
	})
	return was, err
}

// GiveUp gives a Service a new address when Azure has rejected its old one since a migration.
func (d MigrationCommand) GiveUp(ctx context.Context, ip netip.Addr, why string) error {
	return d.ask(ctx, why, func(r record.Record, a *migrate.Asked, request migrate.Wish) error {
		j, err := r.Migration()
		if err != nil {
			return err
		}
		*a, err = a.GiveUp(j, ip, request)
		return err
	})
}

// Begin requests a migration that does not start on its own.
func (d MigrationCommand) Begin(ctx context.Context) error {
	return d.ask(ctx, "", func(_ record.Record, a *migrate.Asked, request migrate.Wish) error {
		a.Run = &request
		return nil
	})
}

// mostWhy is in characters.
const mostWhy = 200

func (d MigrationCommand) ask(ctx context.Context, why string, change func(record.Record, *migrate.Asked, migrate.Wish) error) error {
	if n := utf8.RuneCountInString(why); n > mostWhy {
		return &UsageError{Err: fmt.Errorf("--why has %d letters: want %d at most", n, mostWhy)}
	}
	for _, r := range why {
		if !unicode.IsPrint(r) {
			return &UsageError{Err: fmt.Errorf("--why %q: want one line of text", why)}
		}
	}
	api, err := d.api()
	if err != nil {
		return err
	}
	who := &authenticationv1.SelfSubjectReview{}
	if err := api.Create(ctx, who); err != nil {
		return fmt.Errorf("who asks: %w", err)
	}
	request := migrate.Wish{At: time.Now().UTC().Truncate(time.Second), By: who.Status.UserInfo.Username, Why: why}
	return record.Ask(ctx, api, d.namespace(), func(r record.Record) (migrate.Asked, error) {
		asked := r.Asked()
		return asked, change(r, &asked, request)
	})
}

func (d MigrationCommand) namespace() string { return cmp.Or(d.RecordNamespace, shippedNamespace) }

func (d MigrationCommand) api() (client.Client, error) {
	rc, _, err := process.ClusterConfig(d.Kubeconfig)
	if err != nil {
		return nil, err
	}
	rc.QPS, rc.UserAgent = -1, "weir/"+Version
	scheme := view.Scheme()
	for _, add := range []func() error{
		func() error { return coordinationv1.AddToScheme(scheme) },
		func() error { return authenticationv1.AddToScheme(scheme) },
	} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	api, err := client.New(rc, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", rc.Host, err)
	}
	return api, nil
}
