// Package nvml asks NVIDIA's driver what the cards of this node are. It is the only
// package that calls into C, and it loads the driver's library when it runs, so that it
// builds and starts on machines without one.
//
// A Probe looks again and again, sooner if the driver reports an event. Nothing that a
// driver answers ends it: no library, no driver, no device, no right to ask, a driver that was
// replaced under it: each is a state of the report, and it tries again, seldomer the
// longer it lasts. Cards are asked one by one, so that one that is lost hides no other;
// each field has its own error.
//
// It reads and changes nothing on any card. While others reset or cut cards it can let
// the driver go (Yield), since an open handle keeps them from it.
//
// Package mock, below, is a node of cards for tests and for clusters without any.
package nvml
