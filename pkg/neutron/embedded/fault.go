package embedded

import "github.com/samplecrd/network-controller/pkg/neutron/faults"

// Fault is what goes wrong with requests: see [faults.Fault].
type Fault = faults.Fault

// Request is a request that was answered, or cut off, or is under way.
type Request = faults.Request
