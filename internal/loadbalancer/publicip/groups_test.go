// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// groupsCloud is a cloud in which some resource groups do not exist.
type groupsCloud struct {
	*cloud
	missing []string
}

func (c *groupsCloud) ListPublicIPs(ctx context.Context, subscription, group string) ([]lb.PublicIP, error) {
	if slices.Contains(c.missing, group) {
		return nil, armerror.Classify(armerror.Failure{Status: 404, TargetMissing: true, Codes: []string{"ResourceGroupNotFound"}}, errors.New("not found"))
	}
	return c.cloud.ListPublicIPs(ctx, subscription, group)
}

// groupRecord is a record of resource groups that has room for so many.
type groupRecord struct {
	names []string
	room  int
}

func (g *groupRecord) ReadGroups(context.Context) ([]string, error) {
	return slices.Clone(g.names), nil
}

func (g *groupRecord) ChangeGroups(_ context.Context, add, _ []string) error {
	if len(g.names)+len(add) > g.room {
		return errors.New("no room")
	}
	g.names = append(g.names, add...)
	return nil
}

func inGroup(owner, group string) *Request {
	id := named("c-" + owner)
	id.ResourceGroup = group
	of := "shop/" + owner
	return &Request{Service: of, Owner: owner, Desired: &service.Spec{Owner: owner, Frontends: []service.Frontend{{PublicIP: &service.PublicIP{
		ID: id, ManagedPrefix: "c-" + owner, Family: lb.IPv4, Tags: map[string]string{service.TagService: of, service.TagCluster: "c"},
	}}}}}
}

// A resource group that does not exist is not recorded, so no annotation fills the record; and while the record has no
// room, public IPs in the groups on record are written.
func TestResourceGroupsOnRecord(t *testing.T) {
	keeper, azure := keeperOf()
	record := &groupRecord{names: []string{"net"}, room: 1}
	keeper.cfg.Groups, keeper.cfg.Azure = record, &groupsCloud{cloud: azure, missing: []string{"typo"}}
	typo, full, known := inGroup("a1", "typo"), inGroup("a2", "other"), inGroup("a3", "net")
	requests := []*Request{typo, full, known}
	round := keeper.BeginRound(t.Context(), kubernetes, requests)
	round.WriteRequired(t.Context())
	if typo.Err == nil || !strings.Contains(typo.Err.Error(), "resource group typo does not exist") {
		t.Errorf("in a missing group: %v", typo.Err)
	}
	if full.Err == nil || !strings.Contains(full.Err.Error(), "no room") {
		t.Errorf("without room: %v", full.Err)
	}
	if known.Err != nil || !slices.Equal(record.names, []string{"net"}) || len(azure.said) != 1 {
		t.Errorf("on record: %v; %q, %q", known.Err, record.names, azure.said)
	}
}

// An orphan that a Service requests is kept.
func TestRequestedOrphansAreKept(t *testing.T) {
	a, b := exists("c-a1", "", "20.0.0.1"), exists("c-a2", "", "20.0.0.2")
	keeper, azure := keeperOf(a, b)
	round, err := keeper.ReadRound(t.Context(), kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	round.RemoveOrphans(t.Context(), func(ip lb.PublicIP) bool { return ip.Address == a.Address })
	if !slices.Equal(azure.said, []string{"delete c-a2"}) {
		t.Errorf("%q", azure.said)
	}
}
