// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// maxSize bounds the file; a real one has a few kilobytes.
const maxSize = 1 << 20

// patience is how long a pipe is read.
const patience = 5 * time.Second

// notYet are the keys that users of the Azure cloud provider know and that have no
// effect here so far.
var notYet = []string{
	"networkResourceTenantID", "enableMultipleStandardLoadBalancers",
}

// othersBusiness are the keys that cluster builders write for other parts of the cloud
// provider: where it makes machines and routes, and how it keeps its own pace. They ask
// nothing of Weir, and a warning at each start would hide those that do.
var othersBusiness = []string{
	"vmType", "primaryAvailabilitySetName", "primaryScaleSetName", "enableVmssFlexNodes",
	"routeTableName", "routeTableResourceGroup", "useInstanceMetadata",
	"providerVaultName", "providerKeyName", "providerKeyVersion", "cloudConfigType",
	"userAgent", "disableAvailabilitySetNodes", "putVMSSVMBatchSize", "nodePoolsWithoutDedicatedSNAT",
	"enableMigrateToIPBasedBackendPoolAPI",
}

// othersPace matches the keys of the cloud provider's own back-off, rate limits and caches.
var othersPace = regexp.MustCompile(`(?i)^(cloudProvider(Backoff|RateLimit)[a-z]*|[a-z]+(RateLimit|CacheTTLInSeconds))$`)

// Load reads azure.json, written as JSON or YAML, and returns it normalized. Keys
// match without regard to case. An error is one line that names the file, and the
// line, column or key at fault; it never holds a value of a secret, nor words of a library, which quote
// what they could not read.
func Load(path string) (Config, Ignored, error) {
	content, err := read(path)
	if err != nil {
		return Config{}, Ignored{}, err
	}
	c, ignored, err := parse(content)
	if err != nil {
		return Config{}, Ignored{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, ignored, nil
}

// read returns what is in a file. Of a pipe, as a shell's <(…) is one, it waits for a while.
func read(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // who opens a pipe else waits for its writer
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	if err := file.SetReadDeadline(time.Now().Add(patience)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("%s: it is no regular file, and its end does not come within %s", path, patience)
	case err != nil:
		return nil, err
	}
	if len(content) > maxSize {
		return nil, fmt.Errorf("%s: larger than %d bytes, which no azure.json is", path, maxSize)
	}
	return content, nil
}

func parse(content []byte) (Config, Ignored, error) {
	var c Config
	keys, err := decode(content)
	if err != nil {
		return Config{}, Ignored{}, err
	}
	rest, err := assign(reflect.ValueOf(&c).Elem(), keys, "")
	if err == nil {
		err = c.Normalize()
	}
	if err != nil {
		return Config{}, Ignored{}, located(content, err)
	}
	var ignored Ignored
	for _, key := range rest {
		same := func(k string) bool { return strings.EqualFold(k, key) }
		known := slices.IndexFunc(notYet, same)
		switch {
		case slices.ContainsFunc(othersBusiness, same), othersPace.MatchString(key):
		case known < 0 && shown(key) != key:
			ignored.Odd++
		case known < 0:
			ignored.Unknown = append(ignored.Unknown, key)
		case !empty(keys[key]):
			ignored.NotYet = append(ignored.NotYet, notYet[known])
		}
	}
	return c, ignored, nil
}

// empty reports whether a value asks for nothing.
func empty(value json.RawMessage) bool { return string(value) == "null" || string(value) == `""` }
