// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// Azure reads and writes public IPs. Its errors carry a *fault.Fault. It is called from several
// goroutines at once.
type Azure interface {
	ListPublicIPs(ctx context.Context, subscription, resourceGroup string) ([]lb.PublicIP, error)
	PutPublicIP(ctx context.Context, ip lb.PublicIP) (lb.PublicIP, error)
	DeletePublicIP(ctx context.Context, ip lb.PublicIP) error
}

// Config is what a Keeper works with. All fields but Lease are needed.
type Config struct {
	Azure Azure
	// Lease keeps other controllers away during a write; nil is none.
	Lease      contest.Lease
	Contests   *contest.Contests
	InProgress *contest.InProgress
	Log        *slog.Logger
	// ClusterName is in the tags and names of what is made.
	ClusterName string
	// Group is where public IPs are, unless a Service says otherwise; its Name is not used.
	Group lb.ResourceID
	// Location is the region of what is made.
	Location string
	// LoadBalancers are all that are the cluster's.
	LoadBalancers []lb.LoadBalancerID
}

// Keeper keeps the public IPs of a cluster's Services. Its methods may be called from any
// goroutine.
type Keeper struct{ cfg Config }

// New returns a Keeper.
func New(cfg Config) *Keeper { return &Keeper{cfg} }

// foreign reports whether a public IP is another cluster's, which may have a Service of the
// same name.
func (c *Config) foreign(ip lb.PublicIP) bool {
	if of := lb.Tag(ip.Tags, service.TagCluster); of != "" && !strings.EqualFold(of, c.ClusterName) {
		return true
	}
	return ip.UsedBy != "" && !slices.ContainsFunc(c.LoadBalancers, func(id lb.LoadBalancerID) bool {
		return hasPrefixFold(ip.UsedBy, id.String()+"/")
	})
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
