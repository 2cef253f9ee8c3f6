// The case of a Tandem probe: base, lid, and its parts as blocks. build: paper, standard, 5g. show: base, lid (as printed), drawing,
// layout, or a picture's name. Places: layout.scad. mm.
build = "standard";
show = "assembled";
include <layout.scad>
include <drawing.scad>
$fn = 24;

function of(kind) = [for (p = parts) if (p[1] == kind) p];

module rounded(size, r = 4) {
    linear_extrude(size[2]) translate([r, r]) offset(r) square([size[0] - 2 * r, size[1] - 2 * r]);
}

// Four corners that hold a part at its clearance.
module bay(p, high, long = 8) {
    a = p[2]; s = p[3]; c = clearance / 2;
    for (i = [0, 1], j = [0, 1]) translate([i ? a[0] + s[0] + c : a[0] - c, j ? a[1] + s[1] + c : a[1] - c, wall - 0.01])
        mirror([i, 0]) mirror([0, j]) {
            translate([-rib, -rib]) cube([rib, long, high]);
            translate([-rib, -rib]) cube([min(long, s[0] / 3), rib, high]);
        }
}

module strap_slots(p) { // for a hook-and-loop strap around the battery, 20 mm wide, under its ends
    for (i = [0.25, 0.75]) translate([p[2][0] + i * p[3][0] - 10, 0, -1]) {
        translate([0, p[2][1] + 3]) cube([20, 3, wall + 2]);
        translate([0, p[2][1] + p[3][1] - 6]) cube([20, 3, wall + 2]);
    }
}

module lug() {
    difference() {
        translate([-lug, -22, 0]) rounded([lug + 8, 44, 5], 3);
        translate([-lug + 2.5, -strap_slot[0] / 2, -1]) cube([strap_slot[1], strap_slot[0], 7]);
        translate([0.5, -30, -1]) cube([20, 60, 8]);
    }
}

module base() {
    difference() {
        rounded([outer[0], outer[1], inner_top]);
        translate([wall, wall, wall]) rounded([outer[0] - 2 * wall, outer[1] - 2 * wall, outer[2]], 2);
        for (x = inlets) translate([x, -1, inlet_z[0]]) cube([slot, wall + 2, inlet_z[1] - inlet_z[0]]);
        translate([ethernet[0], -1, ethernet[1]]) cube([ethernet[2], wall + 2, ethernet[3]]);
        translate([charge[0], outer[1] - wall - 1, charge[1]]) cube([charge[2], wall + 2, charge[3]]);
        for (p = of("battery")) strap_slots(p);
    }
    for (p = parts) if (p[1] == "modem") bay(p, p[3][2] * 0.6, 10); else if (p[1] == "hub" || p[1] == "battery") bay(p, 10);
    for (h = holes) translate([h[0], h[1], wall - 0.01]) difference() {
        cylinder(d = 6, h = standoff);
        translate([0, 0, 0.5]) cylinder(d = 3.2, h = standoff);
    }
    for (h = posts) translate([h[0], h[1], wall - 0.01]) difference() {
        union() {
            cylinder(d = post, h = inner_top - wall);
            // Into the wall, so that the post does not stand alone.
            translate([-post / 2, h[1] < outer[1] / 2 ? -post / 2 - 0.5 : 0, 0]) cube([post, post / 2 + 0.5, inner_top - wall]);
        }
        translate([0, 0, inner_top - wall - 9]) cylinder(d = 3.6, h = 10);
    }
    translate([0, outer[1] / 2, 0]) lug();
    translate([outer[0], outer[1] / 2, 0]) mirror([1, 0]) lug();
}

// As it is printed: the outside down. x is the box's, y mirrored when it is put on.
module lid() {
    difference() {
        union() {
            rounded([outer[0], outer[1], wall]);
            for (y = [wall + lid_gap, outer[1] - wall - lid_gap - rib]) difference() {
                translate([wall + 30, y, wall - 0.01]) cube([outer[0] - 2 * wall - 60, rib, lip]);
                for (h = posts) translate([h[0] - post / 2 - 1, y - 1, wall]) cube([post + 2, rib + 2, lip + 1]);
            }
            translate([led[0], outer[1] - led[1], wall - 0.01]) cylinder(d = led_collar, h = 4);
        }
        for (h = posts) translate([h[0], outer[1] - h[1], -1]) {
            cylinder(d = 2.9, h = wall + 2);
            cylinder(d = 5.2, h = 2.2);
        }
        for (x = outlets) translate([x, outer[1] - outlet_y[1], -1]) cube([slot, outlet_y[1] - outlet_y[0], wall + 2]);
        translate([led[0], outer[1] - led[1], -1]) cylinder(d = 5.4, h = 8);
    }
}

module lid_on() { translate([0, outer[1], outer[2]]) rotate([180, 0, 0]) lid(); }

// Parts, recognisable.
module block(p) {
    s = p[3]; kind = p[1];
    translate(p[2]) {
        if (kind == "pi") {
            color("#1b7f3b") cube([s[0], s[1], 1.6]);
            color("silver") for (y = [3, 21]) translate([s[0] - 17, y, 1.6]) cube([17, 14, s[2] - 1.6]);
            color("#c9ccd1") translate([s[0] - 21, 39, 1.6]) cube([21, 15, 13]);
            color("#20242a") translate([7, 50, 1.6]) cube([51, 5, 8]);
            color("#d7dadf") translate([24, 20, 1.6]) cube([15, 15, 2.4]);
            color("silver") { translate([7, -1, 1.6]) cube([9, 7, 3.2]); translate([22, -1, 1.6]) cube([7, 7, 3]); }
        } else if (kind == "battery") {
            color("#34495e") cube(s);
            color("#7fd1ff") for (i = [0:3]) translate([s[0] - 12 - i * 5, s[1] / 2, s[2]]) cube([3, 3, 0.3]);
            color("silver") for (y = [0.25, 0.5, 0.75]) translate([s[0], s[1] * y - 6, s[2] / 2 - 3]) cube([0.5, 12, 6]);
        } else if (kind == "hub") {
            color("#2b2b2b") cube(s);
            color("silver") for (i = [0:4]) translate([8 + i * 20, s[1], 8]) cube([13, 0.6, 7]);
            color("#58d68d") for (i = [0:6]) translate([10 + i * 13, s[1] / 2, s[2]]) cube([3, 2, 0.3]);
        } else if (kind == "modem") {
            color("#c0392b") cube(s);
            color("silver") translate([s[0] * 0.15 - 0.5, s[1] * 0.25, s[2] * 0.25]) cube([s[0] + 0.4, s[1] * 0.5, s[2] * 0.5]);
            color("silver") translate([s[0] * 0.2, -5, s[2] / 2 - 6]) cube([4.5, 5, 12]);
        } else if (kind == "antenna") color("#e0a526") cube(s);
        else if (kind == "fan") {
            color("#7a4a2b") difference() { cube(s); translate([s[0] / 2, s[1] / 2, -1]) cylinder(d = 37, h = 12); }
            color("#a56b43") for (i = [0:6]) translate([s[0] / 2, s[1] / 2, 4]) rotate([0, 0, i * 51]) cube([17, 5, 2]);
            color("#7a4a2b") translate([s[0] / 2, s[1] / 2]) cylinder(d = 14, h = 8);
        } else if (kind == "led") color("#ff5ad0") translate([s[0] / 2, s[1] / 2]) {
            cylinder(d = 5, h = 6.1); translate([0, 0, 6.1]) sphere(d = 5);
        }
    }
}
module put(kinds, up = 0) { for (p = parts) if (len(search([p[1]], kinds)) && search([p[1]], kinds)[0] != []) translate([0, 0, up]) block(p); }
module body() { color("#dfe6ec") base(); }
module cover(a = 1) { color("#8fb8d8", a) lid_on(); }

// A picture: what is shown, around the middle of the box and so much below it (mm), 100 long, for a camera that looks at the origin.
module scene(below = 0) { scale(100 / outer[0]) translate([-outer[0] / 2, -outer[1] / 2, -outer[2] / 2 - below]) children(); }

if (show == "layout") layout();
else if (show == "drawing") drawing();
else if (show == "base") base();
else if (show == "lid") lid();
else if (show == "assembled") scene() { body(); cover(); put(["led"], 3); }
else if (show == "exploded") scene(75) {
    body(); put(["pi", "battery", "hub", "modem", "antenna"], 70); put(["led", "fan"], 105); translate([0, 0, 150]) cover();
}
else if (show == "step-1-pi") scene() { body(); put(["pi"]); }
else if (show == "step-2-hub-battery") scene() { body(); put(["pi", "battery", "hub"]); }
else if (show == "step-3-modems-antennas") scene() { body(); put(["pi", "battery", "hub", "modem", "antenna"]); }
else if (show == "step-4-led-lid") scene(35) {
    body(); put(["pi", "battery", "hub", "modem", "antenna", "fan"]); put(["led"], 35); translate([0, 0, 70]) cover();
}
else assert(false, str("nothing to show is called ", show));
