// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/kube/record"
	"weir.dev/weir/internal/migrate"
)

// takesBack requests an undo like weir migrate stop --undo.
func (s *Stage) takesBack() error {
	return record.UpdateRequests(ctx, s.people, weirNamespace, func(r record.Record) (migrate.UserRequests, error) {
		j, err := r.MigrationJournal()
		if err != nil {
			return migrate.UserRequests{}, err
		}
		return r.MigrationRequests().RequestUndo(j, migrate.UserRequest{At: time.Now().UTC(), By: "jane"})
	})
}

func (s *Stage) migrationJournal() (migrate.Journal, error) {
	r, err := record.Read(ctx, s.people, weirNamespace)
	if err != nil {
		return migrate.Journal{}, err
	}
	return r.MigrationJournal()
}

// standing returns what an undone migration must preserve: the pools of each machine and model, and
// each load balancer with its frontends, rules and probes.
func (s *Stage) standing() (map[string]string, error) {
	var all []struct {
		ID   string         `json:"id"`
		Body map[string]any `json:"body"`
	}
	if err := json.Unmarshal(s.emu.Snapshot(), &all); err != nil {
		return nil, err
	}
	is := map[string]string{}
	for _, r := range all {
		kind := strings.ToLower(r.ID)
		switch {
		case strings.Contains(kind, "/loadbalancers/"):
			properties := r.Body["properties"].(map[string]any)
			for _, part := range []string{"loadBalancingRules", "probes", "frontendIPConfigurations"} {
				text, err := json.Marshal(withoutEtags(properties[part]))
				if err != nil {
					return nil, err
				}
				is[kind+" "+part] = string(text)
			}
			is[kind+" SKU"] = fmt.Sprint(r.Body["sku"])
		case strings.Contains(kind, "/publicipaddresses/"):
			is[kind] = fmt.Sprint(r.Body["properties"].(map[string]any)["ipAddress"], r.Body["sku"])
		case strings.Contains(kind, "/networkinterfaces/"), strings.Contains(kind, "/virtualmachinescalesets/"):
			memberships(is, kind, r.Body)
		}
	}
	return is, nil
}

func withoutEtags(of any) any {
	switch of := of.(type) {
	case map[string]any:
		for _, key := range []string{"etag", "provisioningState"} {
			delete(of, key)
		}
		for key, part := range of {
			of[key] = withoutEtags(part)
		}
	case []any:
		for n := range of {
			of[n] = withoutEtags(of[n])
		}
	}
	return of
}

// memberships adds the pools of each IP configuration in a resource.
func memberships(to map[string]string, at string, of any) {
	switch of := of.(type) {
	case map[string]any:
		if name, ok := of["name"].(string); ok {
			at += "/" + name
		}
		if list, ok := of["loadBalancerBackendAddressPools"].([]any); ok {
			var ids []string
			for _, p := range list {
				ids = append(ids, strings.ToLower(p.(map[string]any)["id"].(string)))
			}
			to[at] = strings.Join(slices.Sorted(slices.Values(ids)), " ")
		}
		for key, part := range of {
			if key == "properties" || strings.HasPrefix(key, "network") || strings.HasPrefix(key, "virtualMachine") || key == "ipConfigurations" || key == "instances" {
				memberships(to, at, part)
			}
		}
	case []any:
		for _, part := range of {
			memberships(to, at, part)
		}
	}
}

// is returns what changed.
func (s *Stage) is(was map[string]string) error {
	are, err := s.standing()
	if err != nil || maps.Equal(are, was) {
		return err
	}
	for key, one := range was {
		if are[key] != one {
			return fmt.Errorf("%s was\n%s\nand is\n%s", key, one, are[key])
		}
	}
	return fmt.Errorf("there is more than there was: %v, %v", was, are)
}

// somethingFails injects random Azure failures and lost responses.
func (s *Stage) somethingFails(r *rand.Rand) error {
	var faults []string
	for _, kind := range []string{"put", "patch", "action", "delete", "list", "get", "poll"} {
		action := []string{"{status: 429, code: TooManyRequests, headers: {Retry-After: '7'}}", "{status: 500, code: InternalServerError}", "{drop: true}", "{drop: true, applied: true}"}[r.IntN(4)]
		faults = append(faults, fmt.Sprintf("{name: fault, match: {path: '**', kind: %s, probability: 0.2, maxMatches: 4}, action: %s}", kind, action))
	}
	return s.AzureFaults(faults...)
}

func (s *Stage) nicOf(node int) string { return network + "networkInterfaces/" + nodeName(node) }

// An undo at any time, with faults and kills, is either rejected and the migration completes, or
// restores every machine and address until a user requests a migration again, which completes
// normally.
func TestFromBasicToStandardAndBack(t *testing.T) {
	back, ends := 0, 0
	for seed := range uint64(max(*seeds/3, 1)) {
		seed += *firstSeed
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			kinds := []func(*config.Config){ofInterfaces, func(*config.Config) {}}
			pools := kinds[r.IntN(2)]
			stage(t, Options{Seed: seed, Machines: true, Indoors: true, HideDeleted: seed%2 == 0, LatencyScale: slowHere(seed), Configure: func(c *config.Config) { toStandard(c); pools(c) }}, func(s *Stage) {
				must(s.addBasicOf(machineKinds[r.IntN(len(machineKinds))], 4, basics()))
				s.Pass(time.Minute)
				was, err := s.standing()
				must(err)
				behind := 0
				for _, in := range was {
					behind += strings.Count(in, "/backendaddresspools/kubernetes")
				}
				if behind < 8 {
					must(fmt.Errorf("machines are in %d pools", behind))
				}
				must(s.somethingFails(r))
				s.Start()
				s.Pass(5*time.Second + time.Duration(r.IntN(120_000))*time.Millisecond)
				refused := s.takesBack()
				for range r.IntN(4) {
					s.DiesAt(1+r.IntN(40), r.IntN(2) == 0)
					s.Pass(time.Duration(r.IntN(60)) * time.Second)
				}
				s.DiesAt(0, false)
				if refused != nil {
					ends++
					must(s.Settles(40 * time.Minute))
					must(s.migrated())
					return
				}
				back++
				must(s.eventuallyUndone(40 * time.Minute))
				must(s.is(was))
				s.Pass(10 * time.Minute)
				must(s.is(was))
				must(s.asksOfMigration(func(a *migrate.UserRequests) { a.Run = &migrate.UserRequest{At: time.Now().UTC()} }))
				s.Kill(0)
				must(s.Settles(40 * time.Minute))
				must(s.migrated())
			})
		})
	}
	t.Logf("%d were taken back, and %d ended", back, ends)
	if *seeds >= 30 && (back == 0 || ends == 0) {
		t.Errorf("%d were taken back, and %d ended: want some of each", back, ends)
	}
}

func (s *Stage) eventuallyUndone(most time.Duration) error {
	for range most / (5 * time.Second) {
		if j, err := s.migrationJournal(); err != nil || j.CompletedUndo != nil {
			return err
		}
		s.Pass(5 * time.Second)
	}
	return errors.New("it is not taken back")
}
