// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Settings configure a probe.
type Settings struct {
	Subscription, Location string
	// Image is publisher:offer:sku:version.
	VMSize, Image string
	// Key is an OpenSSH public key, required by Azure. Its private key is discarded.
	Key     string
	Suffix  string
	Version string
	Cloud   string
	// Secrets must not appear in the report, e.g. the tenant ID.
	Secrets []string
}

// DefaultVMSize is a small size that most regions have.
const DefaultVMSize = "Standard_B1s"

// DefaultImage is a small image that listens on port 22.
const DefaultImage = "Canonical:ubuntu-24_04-lts:server:latest"

// Both identify a group of a probe.
const (
	// Prefix is the name prefix of the resource groups.
	Prefix = "weir-probe-"
	// Tag is the key of their tag. Its value is the group name, so copied tags do not match.
	Tag = "weir-probe"
)

var (
	idRule       = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)
	locationRule = regexp.MustCompile(`^[0-9a-z]{1,40}$`)
	sizeRule     = regexp.MustCompile(`^[0-9A-Za-z_-]{1,60}$`)
	imageRule    = regexp.MustCompile(`^[0-9A-Za-z._-]+(:[0-9A-Za-z._-]+){3}$`)
	suffixRule   = regexp.MustCompile(`^[0-9a-z]{6,20}$`)
)

// Normalize adds defaults and spells the location like Azure.
func (s Settings) Normalize() (Settings, error) {
	s.Location = strings.ToLower(strings.ReplaceAll(s.Location, " ", ""))
	if s.VMSize == "" {
		s.VMSize = DefaultVMSize
	}
	if s.Image == "" {
		s.Image = DefaultImage
	}
	for _, setting := range []struct {
		flag, value, want string
		rule              *regexp.Regexp
	}{
		{"--subscription", s.Subscription, wantSubscription, idRule},
		{"--location", s.Location, "a region such as westeurope, or set location in azure.json", locationRule},
		{"--vm-size", s.VMSize, "a size such as " + DefaultVMSize, sizeRule},
		{"--image", s.Image, "publisher:offer:sku:version, such as " + DefaultImage, imageRule},
	} {
		if !setting.rule.MatchString(setting.value) {
			return s, fmt.Errorf("%s %q: want %s", setting.flag, setting.value, setting.want)
		}
	}
	if !suffixRule.MatchString(s.Suffix) {
		return s, fmt.Errorf("suffix %q: want 6 to 20 lower-case letters and digits", s.Suffix)
	}
	return s, nil
}

// CheckSubscription returns an error for an invalid subscription ID.
func CheckSubscription(id string) error {
	if !idRule.MatchString(id) {
		return fmt.Errorf("--subscription %q: want %s", id, wantSubscription)
	}
	return nil
}

const wantSubscription = "the id of a subscription, or set subscriptionId in azure.json"

// GroupName is the name of the resource group.
func (s Settings) GroupName() string { return Prefix + s.Suffix }

// FormatOffer describes the resources of a probe, their price and its purpose.
func (s Settings) FormatOffer() string {
	return fmt.Sprintf(`weirlab probe-azure makes one resource group, sends Azure some 60 requests, and deletes the group again:

  subscription    %s
  resource group  %s, in %s
  in it           2 virtual machines %s (%s),
                  each with one disk and one network interface, without a public IP and without a login;
                  2 internal Standard load balancers with a pool each, one of them with a second pool for a while;
                  2 Standard public IPs, one of IPv4 and one of IPv6, that nothing uses;
                  1 virtual network, 1 network security group

It takes about half an hour. At the list prices of 2025 such machines, disks, load balancers and public IPs cost about
0.11 USD an hour together; what you pay is between you and Azure. Nothing outside of the group is changed.

It finds out how this Azure treats:
`, s.Subscription, s.GroupName(), s.Location, s.VMSize, s.Image) + listProperties()
}

func (s Settings) newTags(now time.Time) Object {
	return Object{
		Tag:       s.GroupName(),
		"purpose": "weirlab probe-azure: disposable, may be deleted at any time",
		"created": now.UTC().Format(time.RFC3339),
	}
}

func isProbeGroup(name string, tags Object) bool {
	value, _ := tags[Tag].(string)
	return len(name) > len(Prefix) && strings.EqualFold(name[:len(Prefix)], Prefix) && strings.EqualFold(value, name)
}
