// The dimensioned drawing: a section and four views at 1:2 on an A3 sheet. Every figure is the layout's own.
k = 0.5;      // of the views
thin = 0.18;  // line widths on paper, mm
thick = 0.4;

module line(a, b, w = thin) {
    translate(a) rotate(atan2(b[1] - a[1], b[0] - a[0])) translate([0, -w / 2]) square([max(norm(b - a), 0.01), w]);
}
module outline(at, size, w = thick) {
    translate(at) difference() { translate([-w / 2, -w / 2]) square(size + [w, w]); translate([w / 2, w / 2]) square(size - [w, w]); }
}
module ring(at, d, w = thin) { translate(at) difference() { circle(d = d + w); circle(d = d - w); } }
module words(at, text, size = 2.5, halign = "center", turn = 0) {
    translate(at) rotate(turn) text(text, size = size, halign = halign, valign = "baseline", $fn = 3);
}
function figure(x) = str(round(x * 10) / 10);
module arrow(at, angle) { translate(at) rotate(angle) polygon([[0, 0], [2, 0.35], [2, -0.35]]); }

// From a to b along x, its line at y; from: where the extension lines begin. Sheet's mm; says: the figure in the model's mm.
module across(a, b, y, from, says) {
    up = y > from ? 1 : -1;
    for (x = [a, b]) line([x, from + up], [x, y + up]);
    line([a, y], [b, y]);
    small = abs(b - a) < 2 * len(says);
    arrow([a, y], small ? 180 : 0); arrow([b, y], small ? 0 : 180);
    words([small ? max(a, b) + 2.5 : (a + b) / 2, y + 0.8], says, halign = small ? "left" : "center");
}
module upright(a, b, x, from, says) {
    right = x > from ? 1 : -1;
    for (y = [a, b]) line([from + right, y], [x + right, y]);
    line([x, a], [x, b]);
    small = abs(b - a) < 2 * len(says);
    arrow([x, a], small ? 270 : 90); arrow([x, b], small ? 90 : 270);
    words([x - 0.8, small ? max(a, b) + 2.5 : (a + b) / 2], says, halign = small ? "left" : "center", turn = 90);
}

module named(text, width) { words([width * k / 2, -30], text, 3.2); }

module front() {
    w = outer[0]; h = outer[2];
    outline([0, 0], [w, h] * k);
    line([0, inner_top] * k, [w, inner_top] * k);
    for (x = inlets) outline([x, inlet_z[0]] * k, [slot, inlet_z[1] - inlet_z[0]] * k, thin);
    outline([ethernet[0], ethernet[1]] * k, [ethernet[2], ethernet[3]] * k, thin);
    across(0, w * k, -21, 0, figure(w));
    across(0, ethernet[0] * k, -7, 0, figure(ethernet[0]));
    across(ethernet[0] * k, (ethernet[0] + ethernet[2]) * k, -7, 0, str(ethernet[2], " × ", ethernet[3]));
    across(0, inlets[0] * k, -14, 0, figure(inlets[0]));
    across(inlets[0] * k, (inlets[len(inlets) - 1] + slot) * k, -14, 0,
        str(len(inlets), " slots of ", slot, ", pitch ", pitch, ": ", figure(inlets[len(inlets) - 1] + slot - inlets[0])));
    upright(0, h * k, -14, 0, figure(h));
    upright(0, inner_top * k, -7, 0, figure(inner_top));
    upright(inlet_z[0] * k, inlet_z[1] * k, w * k + 7, w * k, figure(inlet_z[1] - inlet_z[0]));
    upright(0, ethernet[1] * k, w * k + 14, w * k, figure(ethernet[1]));
    named("Front", w);
}

module back() { // seen from behind: x runs to the left
    w = outer[0]; x = w - charge[0] - charge[2];
    outline([0, 0], [w, outer[2]] * k);
    line([0, inner_top] * k, [w, inner_top] * k);
    outline([x, charge[1]] * k, [charge[2], charge[3]] * k, thin);
    across(0, x * k, -7, 0, figure(x));
    across(x * k, (x + charge[2]) * k, -7, 0, str(charge[2], " × ", charge[3]));
    upright(0, charge[1] * k, -7, 0, figure(charge[1]));
    translate([0, 14]) named("Back", w);
}

module left_end() {
    d = outer[1];
    outline([0, 0], [d, outer[2]] * k);
    line([0, inner_top] * k, [d, inner_top] * k);
    outline([d / 2 - 22, 0] * k, [44, 5] * k, thin);
    across((d / 2 - 22) * k, (d / 2 + 22) * k, -7, 0, str("lug 44, slot ", strap_slot[0], " × ", strap_slot[1]));
    upright(0, 5 * k, -7, 0, "5");
    translate([0, 14]) named("Left end", d);
}

module plan() {
    w = outer[0]; d = outer[1];
    scale(k) projection(cut = true) translate([0, 0, -wall - 1.5]) base();
    for (p = parts) if (p[1] != "antenna" && p[1] != "led" && p[1] != "fan") {
        outline([p[2][0], p[2][1]] * k, [p[3][0], p[3][1]] * k, thin);
        words([p[2][0] + p[3][0] / 2, p[2][1] + p[3][1] / 2] * k, p[0], 2.2, turn = p[1] == "modem" ? 90 : 0);
    }
    for (p = parts) if (p[1] == "antenna") outline([p[2][0], p[2][1]] * k, [p[3][0], p[3][1]] * k, 0.1);
    m = [for (p = parts) if (p[1] == "modem") p];
    across(0, w * k, -28, 0, figure(w));
    across(-lug * k, (w + lug) * k, d * k + 21, d * k / 2 + 12, str(figure(w + 2 * lug), " with the lugs"));
    across((m[0][2][0] + m[0][3][0]) * k, m[1][2][0] * k, d * k + 14, d * k, str(figure(m[1][2][0] - m[0][2][0] - m[0][3][0]), " between the modems"));
    across(0, m[0][2][0] * k, d * k + 7, d * k, figure(m[0][2][0]));
    across(0, holes[0][0] * k, -7, 0, figure(holes[0][0]));
    across(holes[0][0] * k, holes[2][0] * k, -7, 0, str(pi_hole_pitch[0], ", 4 holes 3.2"));
    across(0, posts[0][0] * k, -21, 0, figure(posts[0][0]));
    across(posts[0][0] * k, posts[4][0] * k, -21, 0, figure(posts[4][0] - posts[0][0]));
    across(posts[4][0] * k, posts[1][0] * k, -21, 0, figure(posts[1][0] - posts[4][0]));
    across(posts[0][0] * k, posts[5][0] * k, -14, 0, str(figure(posts[5][0] - posts[0][0]), " (back)"));
    upright(0, d * k, -21, 0, figure(d));
    upright(0, holes[0][1] * k, -14, 0, figure(holes[0][1]));
    upright(holes[0][1] * k, holes[1][1] * k, -14, 0, str(pi_hole_pitch[1]));
    upright(battery_at[1] * k, (battery_at[1] + battery[1]) * k, -14, 0, figure(battery[1]));
    upright(posts[0][1] * k, posts[2][1] * k, w * k + 12, w * k, figure(posts[2][1] - posts[0][1]));
    translate([0, -7]) named(str("Base, cut ", wall + 1.5, " mm above its underside; parts where they lie"), w);
}

module top() {
    w = outer[0]; d = outer[1]; last = outlets[len(outlets) - 1] + slot;
    outline([0, 0], [w, d] * k);
    for (h = posts) { ring(h * k, 5.2 * k); ring(h * k, 2.9 * k, 0.12); }
    ring(led * k, 5.4 * k);
    for (x = outlets) outline([x, outlet_y[0]] * k, [slot, outlet_y[1] - outlet_y[0]] * k, thin);
    across(0, outlets[0] * k, -7, 0, figure(outlets[0]));
    across(outlets[0] * k, last * k, -7, 0, str(len(outlets), " slots of ", slot, ", pitch ", pitch, ": ", figure(last - outlets[0])));
    across(0, led[0] * k, -14, 0, str(figure(led[0]), " LED, hole 5.4"));
    upright(0, outlet_y[0] * k, -7, 0, figure(outlet_y[0]));
    upright(outlet_y[0] * k, outlet_y[1] * k, -7, 0, figure(outlet_y[1] - outlet_y[0]));
    upright(0, led[1] * k, -14, 0, figure(led[1]));
    translate([0, 8]) named("Lid from above; 6 holes 2.9, countersunk 5.2", w);
}

module drawing() {
    outline([0, 0], [420, 297], thick);
    translate([32, 255]) front();
    translate([32, 110]) plan();
    translate([32, 40]) back();
    translate([245, 180]) top();
    translate([260, 110]) left_end();
    outline([270, 8], [142, 52], thin);
    for (n = [0 : 6]) words([274, 52 - n * 7], [
        str("Tandem: the case of the ", build, " build"),
        "All lengths in mm; scale 1:2 on A3; made by ./kit hardware",
        str("Walls, floor and lid ", wall, "; corners r 4; ", lid_gap, " between the lid's lip and the wall"),
        str("Pi's posts: d 6, ", standoff, " high, holes 3.2 for M2.5 inserts"),
        str("Lid's posts: d ", post, ", holes 3.6, 9 deep, for M2.5 inserts"),
        "PETG or ASA; three perimeters, 30 % infill; no supports",
        "Nobody has printed one yet: measure your parts first"][n], n == 0 ? 4 : 2.6, "left");
}
