package nodeagent

import "time"

// Health is what the driver says of a card's condition. Nothing in it is a verdict
// but RecoveryAction, which is the driver's.
type Health struct {
	// RecoveryAction is what the driver says would mend the card: none, gpuReset, nodeReboot,
	// drainP2P, drainAndReset, recoverIMEX, busReset, systemReboot, or action<number> for a
	// newer one. "" if the driver is too old to say: then judge by Xids.
	RecoveryAction string `json:"recoveryAction,omitempty"`
	// Xids are the driver's error events since the agent runs, the last of each code,
	// GPU instance and compute instance, by code, then instance. They are forgotten
	// when the card was reset: it was lost and came back, or the driver was.
	Xids []Xid `json:"xids,omitempty"`
	// ECC counts memory errors. nil: the card has no ECC, or it is off.
	ECC *ECC `json:"ecc,omitempty"`
	// RowRemap is what broken memory was mapped out. nil: the driver does not say, as in
	// MIG mode.
	RowRemap *RowRemap `json:"rowRemap,omitempty"`
	// Slowdown are reasons why clocks are held down that point at hardware, in this
	// order: hwSlowdown, swThermal, hwThermal, powerBrake.
	Slowdown []string `json:"slowdown,omitempty"`
	// Watched says that the agent hears of this card's Xids. Without it that Xids is
	// empty means nothing.
	Watched bool `json:"watched,omitempty"`
}

// Xid is an error event of the driver.
type Xid struct {
	// Code is its number in NVIDIA's catalog.
	Code uint64 `json:"code"`
	// Action is what the catalog says to do at once: "RESET_GPU". "" if the catalog gives
	// none, or does not know the code.
	Action string `json:"action,omitempty"`
	// Description is the catalog's, in a few words.
	Description string `json:"description,omitempty"`
	// Instance and ComputeInstance are what it concerns. nil: the whole card.
	Instance        *int `json:"instance,omitempty"`
	ComputeInstance *int `json:"computeInstance,omitempty"`
	// First and Last are when the agent heard of it, Count how often.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Count int       `json:"count"`
}

// ECC counts memory errors.
type ECC struct {
	// Corrected and Uncorrected are since the last reset of the card or driver.
	Corrected   uint64 `json:"corrected"`
	Uncorrected uint64 `json:"uncorrected"`
	// LifetimeUncorrected are those of the card's life.
	LifetimeUncorrected uint64 `json:"lifetimeUncorrected"`
}

// RowRemap is how many rows of memory were replaced by spare ones.
type RowRemap struct {
	Corrected   int  `json:"corrected"`         // after errors that could be corrected
	Uncorrected int  `json:"uncorrected"`       // after errors that could not
	Pending     bool `json:"pending,omitempty"` // a reset is needed to replace more
	Failed      bool `json:"failed,omitempty"`  // there are no spare rows: replace the card
}
