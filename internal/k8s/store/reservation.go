// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/loadbalancer"
)

const (
	// PrivateIPsName is separate from PublicIPsName, so that each ConfigMap has one writer.
	PrivateIPsName  = "weir-private-ips"
	keyReservations = "reservations"
	// inUse replaces the expiry of an address in use.
	inUse = "-"
)

// PrivateIPReservations stores private address reservations, one "subnet address namespace
// loadBalancer expiry" per line. It implements loadbalancer.PrivateIPStore.
type PrivateIPReservations struct {
	Reader client.Reader
	// Writer must be the leader's fenced writer.
	Writer    client.Writer
	Namespace string
}

// ReadReservations implements loadbalancer.PrivateIPStore.
func (p PrivateIPReservations) ReadReservations(ctx context.Context) (r loadbalancer.PrivateIPRecord, err error) {
	r.Version, err = p.configMapTable().readTable(ctx, p.Reader, func(text string) (err error) {
		r.Reservations, err = parseReservations(text)
		return err
	})
	return r, err
}

// WriteReservations implements loadbalancer.PrivateIPStore.
func (p PrivateIPReservations) WriteReservations(ctx context.Context, r loadbalancer.PrivateIPRecord) (string, error) {
	return p.configMapTable().writeTable(ctx, p.Writer, r.Version, formatReservations(r.Reservations), fmt.Sprintf("%d private addresses", len(r.Reservations)),
		"delete Services that request private addresses, or lower weir.dev/max-frontends of Namespaces")
}

func (p PrivateIPReservations) configMapTable() table {
	return table{p.Namespace, PrivateIPsName, keyReservations}
}

func parseReservations(text string) (map[string]loadbalancer.PrivateIPReservation, error) {
	reservations := map[string]loadbalancer.PrivateIPReservation{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		fields := strings.Fields(line)
		if len(fields) != 5 {
			return nil, fmt.Errorf("line %d is %.200q: want a subnet, an address, a namespace, a load balancer, and a time or %q", number, line, inUse)
		}
		ip, err := netip.ParseAddr(fields[1])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		r := loadbalancer.PrivateIPReservation{Namespace: fields[2], LoadBalancer: fields[3]}
		if fields[4] != inUse {
			expires, err := time.Parse(time.RFC3339, fields[4])
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
			r.Expires = expires.UTC()
		}
		reservations[strings.ToLower(fields[0])+" "+ip.String()] = r
	}
	return reservations, nil
}

func formatReservations(reservations map[string]loadbalancer.PrivateIPReservation) string {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(reservations)) {
		expires := inUse
		if r := reservations[key]; !r.Expires.IsZero() {
			expires = r.Expires.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(&text, "%s %s %s %s\n", key, reservations[key].Namespace, reservations[key].LoadBalancer, expires)
	}
	return text.String()
}
