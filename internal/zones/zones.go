// SPDX-License-Identifier: Apache-2.0

// Package zones decides the availability zones of new public IPs and private frontends. Zones of existing ones never
// change: Azure cannot change them.
package zones

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Choice is a setting: all zones of the region if not set, otherwise these, or none.
type Choice struct {
	IsSet bool
	Zones []string
	// Source is the annotation or the key of azure.json, for messages.
	Source string
}

var zoneRule = regexp.MustCompile(`^[1-9]$`)

// Rule describes the valid zones, for messages.
const Rule = "different zones, each a digit from 1 to 9"

// Normalize returns the zones in order; false if one is no zone or occurs twice.
func Normalize(zones []string) ([]string, bool) {
	sorted := slices.Sorted(slices.Values(zones))
	valid := len(slices.Compact(slices.Clone(sorted))) == len(zones) && !slices.ContainsFunc(sorted, func(zone string) bool { return !zoneRule.MatchString(zone) })
	return sorted, valid
}

// Region are the zones of a region; a region that is not Known has none to choose from.
type Region struct {
	Location string
	Known    bool
	Zones    []string
	// Outage is why the zones could not be read just now; nil if they were, or Azure rejected the read.
	Outage error
}

// OutageError means that something new waits until the zones of its region are known.
type OutageError struct{ Err error }

func (e *OutageError) Error() string {
	return "the availability zones of the region cannot be read, and zones cannot be added later; Weir retries, or name them with availabilityZones in azure.json: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *OutageError) Unwrap() error { return e.Err }

// NewRegion returns the zones of a location in a list by region.
func NewRegion(location string, byRegion map[string][]string) Region {
	of := Region{Location: location}
	for name, zones := range byRegion {
		if regionKey(name) == regionKey(location) {
			of.Known, of.Zones = true, zones
		}
	}
	return of
}

// Pick returns the zones of something new: those of the first choice that is set, otherwise all of the region. Azure
// checks the zones if the region is not known.
func (r Region) Pick(choices ...Choice) ([]string, error) {
	for _, c := range choices {
		if !c.IsSet {
			continue
		}
		for _, zone := range c.Zones {
			if r.Known && !slices.Contains(r.Zones, zone) {
				return nil, fmt.Errorf("%s names zone %s, and region %s has %s: correct it", c.Source, zone, r.Location, describeZones(r.Zones))
			}
		}
		return c.Zones, nil
	}
	if r.Outage != nil {
		return nil, &OutageError{r.Outage}
	}
	return r.Zones, nil
}

// CheckExisting returns an error if a choice that is set differs from what exists.
func (c Choice) CheckExisting(resource string, existing []string) error {
	if !c.IsSet || isEquivalent(c.Zones, existing) {
		return nil
	}
	return fmt.Errorf("%s has %s, and %s requests %s. Azure cannot change that: take the annotation back, or delete the Service and create it again, with another address",
		resource, describeZones(existing), c.Source, describeZones(c.Zones))
}

// CheckEdgeZone returns an error if a choice names availability zones: an edge zone has none.
func (c Choice) CheckEdgeZone(name string) error {
	if !c.IsSet || len(c.Zones) == 0 {
		return nil
	}
	return fmt.Errorf("%s names %s, and edge zone %s has no availability zones: remove the annotation", c.Source, describeZones(c.Zones), name)
}

// isEquivalent reports whether zones mean the same: Azure makes a public IP of two zones redundant in all of them.
func isEquivalent(a, b []string) bool {
	if len(a) > 1 && len(b) > 1 {
		return true
	}
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func describeZones(zones []string) string {
	switch len(zones) {
	case 0:
		return "no zones"
	case 1:
		return "zone " + zones[0]
	}
	return "zones " + strings.Join(slices.Sorted(slices.Values(zones)), ", ")
}
